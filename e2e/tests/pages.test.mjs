// Every page: hydrated without a console error under the strict policy, axe clean in both themes and on a phone; screenshots for eyes.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { assertAccessible, launch, logIn, open, windowFor } from "../support/browser.mjs";
import { act, readJson, until } from "../support/api.mjs";
import { stack } from "../support/stack.mjs";

const RESULTS = new URL("../results/", import.meta.url).pathname;
const WIDTHS = { laptop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

let browser;
before(async () => {
  mkdirSync(RESULTS, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

/** The first item's id of a list, or undefined while there is none. */
const firstId = async (page, path) => (await readJson(page, path)).items[0]?.id;

/** A draft for its page, which no other test needs to have made. */
async function draft(page, message) {
  const cohort = await act(page, "mara", "POST", "/cohorts", {
    queue_id: stack.queue_id,
    title: "A draft to look at",
    reason: "Every page is looked at.",
    selection: { ids: [message] },
  });
  return cohort.id;
}

async function paths(page) {
  await until("the incident has put something into custody", () => firstId(page, "/quarantine?limit=1"));
  const message = await firstId(page, "/quarantine?limit=1");
  const cohort = (await firstId(page, "/cohorts?state=completed&limit=1")) ?? (await draft(page, message));
  return {
    watch: "/",
    quarantine: "/quarantine",
    message: `/quarantine/${message}`,
    cohorts: "/cohorts",
    cohort: `/cohorts/${cohort}`,
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
