// A real Chromium, one per test file; every page is watched for script errors and refused resources.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { stack } from "./stack.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts Chromium. `LAZARET_CHROMIUM` names another binary. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.LAZARET_CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A window of its own for one person; `options` are Playwright's context options. */
export async function windowFor(browser, options = {}) {
  const context = await browser.newContext({ baseURL: stack.base_url, viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`script error: ${error.message}`));
  page.on("console", (message) => {
    // a refused act answers 4xx, which Chromium logs too: those are the product's answers, not faults
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  return { context, page, faults };
}

/** Logs in by the form and waits for Watch; a password names somebody whom the stack doesn't know of. */
export async function logIn(page, username, password) {
  const user = password ? { password } : stack.users.find((candidate) => candidate.username === username);
  assert.ok(user, `the stack has no user ${username}`);
  await page.goto("/login");
  await page.getByLabel("Name", { exact: true }).fill(username);
  await page.getByLabel("Password", { exact: true }).fill(user.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL((url) => url.pathname === "/");
}

/** Waits until the page's code runs. */
export const hydrated = (page) => page.locator("html[data-hydrated]").waitFor({ state: "attached" });

/** Opens a page, hydrated. */
export async function open(page, path) {
  const response = await page.goto(path);
  await hydrated(page);
  return response;
}

/** axe over the page as it is; fails with what it found. */
export async function assertAccessible(page, what) {
  // the whole page in view: what a sticky bar covers at one scroll position is a matter of chance, not of the page
  const viewport = page.viewportSize();
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({ width: viewport.width, height: Math.max(height, viewport.height) });
  // evaluated in the page's world by the debugger, so the content security policy stays as it is
  await page.evaluate(axeSource);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }),
  );
  await page.setViewportSize(viewport);
  const lines = found.violations.map((v) => `${v.id}: ${v.help}\n    ${v.nodes.map((n) => n.html.slice(0, 160)).join("\n    ")}`);
  assert.deepEqual(lines, [], `${what} has accessibility faults`);
}
