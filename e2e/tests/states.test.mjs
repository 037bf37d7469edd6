// What pages say when there is nothing, when it isn't for the reader, when it is frozen, and when nobody answers.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { assertAccessible, hydrated, launch, logIn, open, windowFor } from "../support/browser.mjs";
import { act, readJson } from "../support/api.mjs";
import { passThrough } from "../support/line.mjs";
import { stack } from "../support/stack.mjs";

let browser;
let root;
before(async () => {
  browser = await launch();
  root = (await windowFor(browser)).page;
  await logIn(root, "root");
});
after(() => browser.close());

/** A person with these roles, whom root takes on. */
async function hire(roles) {
  const person = { username: `guest-${randomUUID().slice(0, 8)}`, password: randomUUID(), roles, machine: false };
  await act(root, "root", "POST", "/users", person);
  return person;
}

/** Something in custody: at least the poison is. */
async function heldMessage(page) {
  const { items } = await readJson(page, "/quarantine?state=held&limit=1");
  assert.equal(items.length, 1, "the incident keeps something in custody");
  return items[0].id;
}

test("a viewer reads every list, and every act says which role it needs", async () => {
  const viewer = await hire(["viewer"]);
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, viewer.username, viewer.password);
  await open(page, `/quarantine/${await heldMessage(page)}`);
  assert.ok(await page.getByRole("button", { name: "Reveal, with a reason…" }).isDisabled());
  await page.getByText("needs responder, approver or auditor").first().waitFor();
  assert.ok(await page.getByRole("button", { name: "Freeze off" }).isDisabled());
  await assertAccessible(page, "a message, as its viewer");
  assert.deepEqual(faults, []);
  await context.close();
});

test("who may read nothing is told so on every page, with status 403", async () => {
  const emitter = await hire(["emitter"]);
  const { context, page } = await windowFor(browser);
  await logIn(page, emitter.username, emitter.password);
  for (const path of ["/", "/quarantine", "/cohorts", "/audit"]) {
    const answer = await page.goto(path);
    assert.equal(answer.status(), 403, path);
    await page.getByRole("heading", { name: "You may not see this" }).waitFor();
  }
  await hydrated(page);
  await assertAccessible(page, "a page that isn't for the reader");
  await context.close();
});

test("a cohort or message that isn't there is told with status 404", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "mara");
  for (const path of [`/cohorts/${randomUUID()}`, `/quarantine/${randomUUID()}`]) {
    const answer = await open(page, path);
    assert.equal(answer.status(), 404, path);
    await page.getByRole("heading", { name: "Not found" }).waitFor();
  }
  assert.deepEqual(faults, []);
  await context.close();
});

test("an empty list says what would fill it", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "mara");
  for (const [path, heading] of [
    ["/cohorts?state=rejected", "No cohort here"],
    ["/quarantine?error_class=no_such_class", /\S/],
  ]) {
    const list = await readJson(page, path);
    assert.deepEqual(list.items, [], path);
    await open(page, path);
    await page.locator(".empty").getByRole("heading", { name: heading }).waitFor();
    await assertAccessible(page, path);
  }
  assert.deepEqual(faults, []);
  await context.close();
});

test("a freeze stands on everybody's page until it is lifted, without a reload", async () => {
  const { context: maras, page: mara, faults } = await windowFor(browser);
  const { context: jons, page: jon } = await windowFor(browser);
  await logIn(mara, "mara");
  await logIn(jon, "jon");
  await open(mara, "/");
  await open(jon, "/cohorts");
  const bar = (page) => page.getByRole("status").filter({ hasText: "Every replay is frozen" });
  try {
    await mara.getByRole("button", { name: "Freeze off" }).click();
    const dialog = mara.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("what else does this worker touch?");
    await dialog.getByRole("button", { name: "Freeze every queue" }).click();
    await dialog.getByText("Frozen.").waitFor();
    await mara.keyboard.press("Escape");
    for (const page of [mara, jon]) {
      await bar(page).waitFor();
      await bar(page).getByText("what else does this worker touch?").waitFor();
    }
    assert.ok(await bar(mara).getByRole("button", { name: "Lift the freeze…" }).isDisabled(), "lifting it needs an admin");
    await assertAccessible(mara, "a page under a freeze");
  } finally {
    // whatever failed: no other test is to run under it
    if ((await readJson(root, "/freeze")).all) await act(root, "root", "POST", "/unfreeze", { reason: "nothing else" });
  }
  for (const page of [mara, jon]) await bar(page).waitFor({ state: "detached" });
  assert.deepEqual(faults, []);
  await maras.close();
  await jons.close();
});

test("a page that no longer follows says so, keeps what it shows, and follows again", async () => {
  const line = await passThrough(new URL(stack.base_url));
  const { context, page } = await windowFor(browser);
  await logIn(page, "mara");
  // cookies are a host's, whatever the port: the same session, by a line that can be cut
  await open(page, `${line.address}/cohorts`);
  const live = page.locator(".topbar .live");
  const alarm = page.getByRole("alert").filter({ hasText: "Connection lost" });
  await live.filter({ hasText: /^live$/ }).waitFor();
  await line.cut();
  await live.filter({ hasText: "connection lost" }).waitFor({ timeout: 60_000 });
  await alarm.waitFor();
  await page.getByRole("heading", { level: 1, name: "Cohorts" }).waitFor();
  await assertAccessible(page, "a page that no longer follows");
  await line.mend();
  await live.filter({ hasText: /^live$/ }).waitFor({ timeout: 60_000 });
  await alarm.waitFor({ state: "detached" });
  await line.cut();
  await context.close();
});
