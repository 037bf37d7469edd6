// Ways in: with and without scripts, and what isn't there.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { hydrated, launch, logIn, open, windowFor } from "../support/browser.mjs";
import { stack } from "../support/stack.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test("a wrong password is told, with and without scripts", async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { context, page } = await windowFor(browser, { javaScriptEnabled });
    await page.goto("/login");
    await page.getByLabel("Name", { exact: true }).fill("mara");
    await page.getByLabel("Password", { exact: true }).fill("not her password");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("alert").filter({ hasText: "wrong" }).waitFor();
    await context.close();
  }
});

test("who isn't logged in is led to the door and back again", async () => {
  const { context, page } = await windowFor(browser);
  await page.goto("/cohorts");
  await page.waitForURL((url) => url.pathname === "/login");
  const mara = stack.users.find((user) => user.username === "mara");
  await page.getByLabel("Name", { exact: true }).fill("mara");
  await page.getByLabel("Password", { exact: true }).fill(mara.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL((url) => url.pathname === "/cohorts");
  await context.close();
});

test("pages can be read and followed without scripts", async () => {
  const { context, page } = await windowFor(browser, { javaScriptEnabled: false });
  await logIn(page, "ada");
  for (const [link, heading] of [
    ["Quarantine", "Quarantine"],
    ["Cohorts", "Cohorts"],
    ["Audit", "Audit"],
    ["Watch", "Watch"],
  ]) {
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: link }).click();
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }
  await context.close();
});

test("an unknown page says so with status 404, and an unknown API route with a problem", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "mara");
  const answer = await page.goto("/no/such/page");
  assert.equal(answer.status(), 404);
  await hydrated(page);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const problem = await page.request.get("/api/v1/no/such/route");
  assert.equal(problem.status(), 404);
  assert.match(problem.headers()["content-type"], /application\/problem\+json/);
  assert.equal((await problem.json()).code, "not_found");
  assert.deepEqual(faults, []);
  await context.close();
});

test("logging out ends the session for good", async () => {
  const { context, page, faults } = await windowFor(browser);
  await logIn(page, "ada");
  await open(page, "/audit");
  const cookies = await context.cookies();
  await page.getByRole("button", { name: /Log out/ }).click();
  await page.waitForURL(/\/login/);
  await context.addCookies(cookies);
  const who = await page.request.get("/api/v1/session");
  assert.equal(who.status(), 401, "the old cookie opens nothing");
  assert.deepEqual(faults, []);
  await context.close();
});
