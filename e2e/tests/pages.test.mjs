// Every page: hydrated without a console error under the strict policy, axe clean in both themes and on a phone; screenshots for eyes.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { assertAccessible, launch, logIn, open, windowFor } from "../support/browser.mjs";

const RESULTS = new URL("../results/", import.meta.url).pathname;
const WIDTHS = { laptop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

let browser;
before(async () => {
  mkdirSync(RESULTS, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

/** The first item's id of a list, or undefined while there is none. */
async function firstId(page, path) {
  const list = await (await page.request.get(`/api/v1${path}`)).json();
  return list.items[0]?.id;
}

async function paths(page) {
  const message = await firstId(page, "/quarantine?limit=1");
  assert.ok(message, "the incident under way has put something into custody");
  const cohort = await firstId(page, "/cohorts?limit=1");
  return {
    watch: "/",
    quarantine: "/quarantine",
    message: `/quarantine/${message}`,
    cohorts: "/cohorts",
    ...(cohort ? { cohort: `/cohorts/${cohort}` } : {}),
    audit: "/audit",
    unknown: "/no/such/page",
  };
}

for (const colorScheme of ["light", "dark"]) {
  for (const [width, viewport] of Object.entries(WIDTHS)) {
    test(`every page holds in ${colorScheme} on a ${width}`, async () => {
      const { context, page, faults } = await windowFor(browser, { colorScheme, viewport });
      await page.goto("/login");
      await assertAccessible(page, "log in");
      await page.screenshot({ path: `${RESULTS}login-${colorScheme}-${width}.png`, fullPage: true });
      await logIn(page, "mara");
      for (const [name, path] of Object.entries(await paths(page))) {
        await open(page, path);
        await page.getByRole("heading", { level: 1 }).first().waitFor();
        await page.screenshot({ path: `${RESULTS}${name}-${colorScheme}-${width}.png`, fullPage: true });
        await assertAccessible(page, name);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${name} is ${wide} px wider than the ${width}`);
        // the policy refuses served style attributes; what the page's code sets through CSSOM is its own
        const served = await (await page.request.get(path)).text();
        assert.ok(!/<[^>]* style=/.test(served), `${name} is served with style attributes`);
        assert.deepEqual(faults, [], name);
      }
      await context.close();
    });
  }
}
