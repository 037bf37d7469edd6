// The main job, by two people in two windows: a failed revision's messages go back as one proved canary, then the rest.
// Reviewing works without scripts, so the reviewer approves without.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, hydrated, launch, logIn, open, windowFor } from "../support/browser.mjs";
import { readJson, tryAct, until } from "../support/api.mjs";
import { stack } from "../support/stack.mjs";

const FAILURE = "amount_rejected";
const MENDED = "2026.12.2";
// at two a second there is time to pause
const ENOUGH = 16;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Fills the open dialog and sends it; waits until it has closed. */
async function answer(page, { reason, count, press }) {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^(Reason|Comment)$/).fill(reason);
  if (count) await dialog.getByLabel(/^Type .* to go on/).fill(String(count));
  await dialog.getByRole("button", { name: press }).click();
  await dialog.waitFor({ state: "hidden" });
}

/** Waits until the cohort's badge says so, without a reload: the page is live. */
const badge = (page, word) => page.locator(".page-head .title").getByText(word).waitFor({ timeout: 90_000 });

async function bothThemes(page, what) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `${what}, ${colorScheme}`);
  }
}

test("a failed revision's messages go back as one proved canary, then the rest", { timeout: 600_000 }, async () => {
  const { context: maras, page: mara, faults } = await windowFor(browser);
  await logIn(mara, "mara");
  const queue = stack.queue_id;
  const held = `/quarantine?queue=${queue}&state=held&error_class=${FAILURE}`;

  // the shop deploys its fix, from its own page
  await until("enough failed orders are held", async () => (await readJson(mara, `${held}&limit=1`)).total.value >= ENOUGH);
  const shop = await maras.newPage();
  await shop.goto(stack.control_url);
  await shop.getByRole("button", { name: new RegExp(`^${MENDED.replaceAll(".", "\\.")} `) }).click();
  await shop.getByRole("heading", { name: `Workers run ${MENDED}` }).waitFor();
  await shop.close();
  await until("only the mended workers consume and the DLQ is drained", async () => {
    const { readings, dead_letter_queue: { id } } = await readJson(mara, `/queues/${queue}`);
    const { backlog } = await readJson(mara, `/dead-letter-queues/${id}`);
    return JSON.stringify(readings.consuming_versions) === JSON.stringify([MENDED]) && backlog.value === 0;
  });

  // what failed is selected as a whole, by filter
  await open(mara, held);
  await mara.getByLabel("Select all held rows shown").check();
  const everything = mara.getByRole("button", { name: /^Select everything that matches/ });
  if (await everything.isVisible()) await everything.click();
  await mara.getByRole("button", { name: /^Make cohort of \d+…/ }).click();
  await mara.getByRole("dialog").getByLabel("Title").fill("Large invoices that 2026.12.1 refused");
  await answer(mara, { reason: "2026.12.2 takes them", press: /^Draft a cohort of/ });
  await mara.waitForURL(/\/cohorts\/[0-9a-f-]+$/);
  const path = new URL(mara.url()).pathname;
  const cohort = () => readJson(mara, path);
  const { size } = await cohort();
  assert.ok(size >= ENOUGH, `${size} messages`);

  // the plan: what changed, the canary and how its effect is proved, the limits
  await mara.getByLabel("Condition fixed").selectOption({ label: "worker version" });
  await mara.getByLabel("Reference").fill(MENDED);
  await mara.getByLabel("Workers at least").fill(MENDED);
  await mara.getByLabel("Canary of stratum 0").selectOption({ index: 1 });
  await mara.getByLabel("Probe").fill("invoice-row");
  await mara.getByRole("button", { name: "Add an expectation" }).click();
  const expectation = mara.getByRole("row").filter({ has: mara.getByLabel("Pointer into the rows") });
  await expectation.getByLabel("Pointer into the rows").fill("/0/amount_cents");
  await expectation.getByLabel("How to compare").selectOption({ label: "be equal to" });
  await expectation.getByLabel("Value").fill("/amount_cents");
  await expectation.getByLabel("pointer", { exact: true }).check();
  await mara.getByLabel("Start", { exact: true }).fill("2");
  await mara.getByLabel("At most", { exact: true }).fill("8");
  const save = async (page = mara) => {
    await page.getByRole("button", { name: "Save the draft" }).click();
    await page.getByRole("status").filter({ hasText: "saved;" }).waitFor();
  };
  await save();
  for (const warning of await mara.getByLabel(/^I accept/).all()) {
    await warning.check();
    await save();
  }
  await bothThemes(mara, "the draft");

  // a second author lowers the cap: she is an approver too, and from now on not this plan's
  const { context: iness, page: ines, faults: inessFaults } = await windowFor(browser);
  await logIn(ines, "ines");
  await open(ines, path);
  await ines.getByLabel("At most", { exact: true }).fill("2");
  await save(ines);
  assert.equal((await cohort()).draft.expansion.max_per_s, 2);
  await open(mara, path);

  // nobody may ask for a canary whose payload nobody has opened
  const submit = mara.getByRole("button", { name: "Submit for review…" });
  assert.ok(await submit.isDisabled());
  await mara.getByText("the pre-flight refuses some of it").waitFor();
  await mara.getByText("canary_not_inspected").waitFor();
  await mara.getByRole("link", { name: "Open its payload" }).click();
  await mara.getByRole("button", { name: "Reveal, with a reason…" }).click();
  await bothThemes(mara, "a dialog");
  await answer(mara, { reason: "the canary: is it a right invoice?", press: "Reveal 1 payload" });
  await mara.getByRole("region", { name: "Payload, revealed" }).getByText("invoice_number").waitFor();

  await open(mara, path);
  await submit.click();
  await answer(mara, { reason: "one canary first", press: "Submit for review" });
  await badge(mara, "in review");

  // neither author may approve: mara has no role for it, and four eyes forbid ines, who has; page and server agree
  await open(ines, path);
  for (const [page, status, code] of [[mara, 403, "missing_permission"], [ines, 409, "self_approval"]]) {
    assert.ok(await page.getByRole("button", { name: /^Approve plan …/ }).isDisabled(), code);
    const { acts } = await readJson(page, path);
    const { allowed, reason, detail } = acts.find(({ command }) => command === "approve");
    assert.deepEqual([allowed, reason], [false, code]);
    await page.getByText(detail).first().waitFor();
    const { plan_digest, version } = await cohort();
    const approval = { plan_digest, comment: "I wrote it, so it is right." };
    const refused = await tryAct(page, "POST", `${path}/approve`, approval, version);
    assert.equal(refused.status(), status);
    assert.equal((await refused.json()).code, code);
    assert.equal((await cohort()).state, "in_review");
  }
  await bothThemes(ines, "the review, as its author");
  assert.deepEqual(inessFaults, []);
  await iness.close();

  // a colleague reads it and approves, in a browser that runs no scripts
  const { context: jons, page: jon } = await windowFor(browser, { javaScriptEnabled: false });
  await logIn(jon, "jon");
  await jon.goto(path);
  await jon.getByLabel("Comment").fill("one first, then at most 2 a second");
  await jon.getByLabel(/^Type/).fill(String(size + 1));
  await jon.getByRole("button", { name: /^Approve plan …/ }).click();
  await jon.getByRole("alert").filter({ hasText: "count" }).waitFor();
  await jon.getByLabel("Comment").fill("one first, then at most 2 a second");
  await jon.getByLabel(/^Type/).fill(String(size));
  await jon.getByRole("button", { name: /^Approve plan …/ }).click();
  await jon.locator(".page-head .title").getByText("approved").waitFor();
  await jons.close();

  // mara's page has seen it; one goes first
  await badge(mara, "approved");
  await bothThemes(mara, "the approved cohort");
  await mara.getByRole("button", { name: /^Start canary: publish 1 of/ }).click();
  await answer(mara, { reason: "one first", press: /^Start canary/ });
  await badge(mara, "canary passed");
  await mara.getByRole("navigation", { name: "Cohort" }).getByRole("link", { name: "Replay" }).click();
  await mara.getByText("holds").first().waitFor();
  await bothThemes(mara, "the proved canary");

  // then the rest, once the count is typed
  await mara.getByRole("button", { name: /^Expand: publish the other/ }).click();
  const expand = mara.getByRole("dialog");
  await expand.getByLabel("Reason").fill("the canary passed");
  assert.ok(await expand.getByRole("button", { name: /^Expand/ }).isDisabled(), "not before the count is typed");
  await answer(mara, { reason: "the canary passed", count: size - 1, press: /^Expand/ });

  // she stops it half-way: what has gone stays gone, nothing more goes, and she lets it go on
  await mara.getByRole("button", { name: /^Pause: \d+ stay held…/ }).click();
  await answer(mara, { reason: "is the downstream well?", press: /^Pause/ });
  await badge(mara, "paused");
  const waiting = ({ counts }) => counts.filter(({ state }) => state === "held" || state === "scheduled").reduce((sum, { count }) => sum + count, 0);
  const paused = await cohort();
  assert.ok(waiting(paused) > 0 && waiting(paused) < size - 1, `paused half-way: ${JSON.stringify(paused.counts)}`);
  await bothThemes(mara, "the paused cohort");
  const resume = mara.getByRole("button", { name: /^Resume: \d+ left…/ });
  await resume.waitFor();
  const left = waiting(await cohort());
  assert.equal(left, waiting(paused), "nothing went while it was paused");
  await resume.click();
  await answer(mara, { reason: "it is well", count: left > 1 ? left : undefined, press: /^Resume/ });
  await badge(mara, "completed");
  await bothThemes(mara, "the completed cohort");
  const { counts } = await cohort();
  assert.deepEqual(
    counts.filter(({ count }) => count > 0),
    [{ state: "verified", count: size }],
  );
  assert.deepEqual(faults, []);
  await maras.close();

  // the auditor finds each act, whose and when
  const { context: adas, page: ada, faults: adasFaults } = await windowFor(browser);
  await logIn(ada, "ada");
  await open(ada, `/audit?subject=${path.split("/").at(-1)}`);
  for (const act of ["cohort.create", "cohort.edit", "cohort.submit", "cohort.approve", "cohort.start_canary", "cohort.expand", "cohort.pause", "cohort.resume"]) {
    await ada.getByRole("row").filter({ hasText: act }).first().waitFor();
  }
  assert.deepEqual(adasFaults, []);
  await adas.close();
});

test("a dialog is opened, left and sent by keyboard alone", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "mara");
  const { items } = await readJson(page, "/quarantine?state=held&limit=1");
  assert.equal(items.length, 1, "the poison is held");
  await open(page, `/quarantine/${items[0].id}`);
  const reveal = page.getByRole("button", { name: "Reveal, with a reason…" });
  for (let presses = 0; !(await reveal.evaluate((button) => button === document.activeElement)); presses += 1) {
    assert.ok(presses < 60, "the button is reached by Tab");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  assert.ok(await reveal.evaluate((button) => button === document.activeElement), "focus is back where it was");
  await page.keyboard.press("Enter");
  await page.keyboard.type("what is in it?");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Payload, revealed" }).waitFor();
  await hydrated(page);
  assert.deepEqual(faults, []);
  await context.close();
});
