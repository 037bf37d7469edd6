// The README's pictures, from the running demo: `npm run screenshots` photographs Watch, plays the journey, and
// photographs the replay that the journey brought to its end.
import { mkdirSync } from "node:fs";
import { launch, logIn, open, windowFor } from "./support/browser.mjs";
import { readJson, until } from "./support/api.mjs";

const IMAGES = new URL("../docs/images/", import.meta.url).pathname;
const [what] = process.argv.slice(2);

/** Where to look, and what has to be seen there before the picture is taken. */
const SUBJECTS = {
  async watch(page) {
    await until("several orders are held", async () => (await readJson(page, "/quarantine?state=held&limit=1")).total.value >= 8);
    await open(page, "/");
    await page.locator(".topbar .live").filter({ hasText: /^live$/ }).waitFor();
  },
  async replay(page) {
    const { items } = await readJson(page, "/cohorts?state=completed&limit=1");
    if (!items.length) throw new Error("no cohort is completed: play the journey first");
    await open(page, `/cohorts/${items[0].id}?tab=replay`);
    await page.getByRole("heading", { name: "Decisions" }).waitFor();
  },
};

if (!SUBJECTS[what]) throw new Error(`usage: node screenshots.mjs ${Object.keys(SUBJECTS).join("|")}`);
mkdirSync(IMAGES, { recursive: true });
const browser = await launch();
try {
  const { page } = await windowFor(browser, { colorScheme: "light", viewport: { width: 1200, height: 760 } });
  await logIn(page, "mara");
  await SUBJECTS[what](page);
  await page.screenshot({ path: `${IMAGES}${what}.png` });
} finally {
  await browser.close();
}
