// What a person typed isn't lost or altered, what they did is told, and what is wrong is led to.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, launch, logIn, open, windowFor } from "../support/browser.mjs";
import { act, readJson, until } from "../support/api.mjs";
import { stack } from "../support/stack.mjs";

const TYPED = "rolled_back by deploy_fix, not by me";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** A draft of one held message. */
async function draft(page) {
  await until("something is held", async () => (await readJson(page, "/quarantine?state=held&limit=1")).items.length > 0);
  const { items } = await readJson(page, `/quarantine?state=held&queue=${stack.queue_id}&limit=1`);
  const body = {
    queue_id: stack.queue_id,
    title: "A draft to type into",
    reason: "to type into",
    selection: { ids: [items[0].id] },
  };
  const { id } = await act(page, "mara", "POST", "/cohorts", body);
  return `/cohorts/${id}`;
}

test("a draft that isn't saved survives its tabs and other pages, and a bad field is led to", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "mara");
  const path = await draft(page);
  await open(page, path);
  await page.getByLabel("Reason").fill(TYPED);
  await page.getByText("not saved yet").waitFor();
  await page.getByRole("navigation", { name: "Cohort" }).getByRole("link", { name: "History" }).click();
  await page.getByRole("heading", { name: "Stages" }).waitFor();
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Cohorts" }).click();
  await page.getByRole("link", { name: "A draft to type into" }).first().click();
  await page.getByText("It isn’t saved.").waitFor();
  assert.equal(await page.getByLabel("Reason").inputValue(), TYPED);

  await page.getByLabel("Wait up to").fill("soon");
  const save = page.getByRole("button", { name: "Save the draft" });
  await save.click();
  await page.getByRole("alert").getByRole("link", { name: "Wait up to" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "draft-wait", "the focus is in the bad field");
  await assertAccessible(page, "a draft with a bad field");
  await page.getByLabel("Wait up to").fill("60");
  // what the server refuses is led to as well
  await page.getByLabel("Probe").fill("invoice-row");
  await save.click();
  await page.getByRole("alert").getByRole("link", { name: "Canaries" }).waitFor();
  await page.getByLabel("Canary of stratum 0").selectOption({ index: 1 });
  await page.getByRole("button", { name: "Add an expectation" }).click();
  await save.click();
  await page.getByRole("status").filter({ hasText: "saved;" }).waitFor();
  assert.equal((await readJson(page, path)).draft.reason, TYPED);

  // discarded: the person's own words stand on every page as they were typed
  await page.getByRole("button", { name: "Discard the draft…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Comment").fill(TYPED);
  await dialog.getByRole("button", { name: "Discard the draft" }).click();
  await page.getByRole("status").filter({ hasText: "Done. Discard the draft." }).waitFor();
  await page.locator(".page-head .sub").getByText(`mara: “${TYPED}”`).waitFor();
  await page.getByRole("navigation", { name: "Cohort" }).getByRole("link", { name: "History" }).click();
  await page.locator(".trail").getByText(`“${TYPED}”`).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("an entry of the audit log has an address, with and without scripts", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "ada");
  await open(page, "/audit?action=session.open");
  await page.getByRole("link", { name: /^Open entry session\.open/ }).first().click();
  await page.waitForURL(/entry=/);
  const entry = page.getByRole("complementary", { name: "Entry" });
  await entry.getByRole("heading", { name: "Before and after" }).waitFor();
  await assertAccessible(page, "an opened entry");
  const plain = await windowFor(browser, { javaScriptEnabled: false });
  await logIn(plain.page, "ada");
  await plain.page.goto(page.url());
  await plain.page.getByRole("heading", { name: "Before and after" }).waitFor();
  await plain.context.close();
  assert.deepEqual(faults, []);
  await context.close();
});

test("filters work without scripts, and the way past the rail is seen when it has the focus", async () => {
  const { context, page } = await windowFor(browser, { javaScriptEnabled: false });
  await logIn(page, "mara");
  await page.goto("/quarantine");
  await page.keyboard.press("Tab");
  const skip = await page.getByRole("link", { name: "Skip to content" }).boundingBox();
  assert.ok(skip.width > 24 && skip.height >= 24, JSON.stringify(skip));
  await page.getByRole("checkbox", { name: /^held/ }).check();
  await page.getByRole("button", { name: "Apply the filters" }).click();
  await page.waitForURL(/state=held/);
  await context.close();
});
