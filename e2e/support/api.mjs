// The same API that the pages use, asked with the page's session.
import assert from "node:assert/strict";

/** Reads a path below `/api/v1`. */
export async function readJson(page, path) {
  const answer = await page.request.get(`/api/v1${path}`);
  assert.equal(answer.status(), 200, `${path}: ${await answer.text()}`);
  return answer.json();
}

/** Asks until it holds; fails by naming what never came true. */
export async function until(what, holds, limit = 120_000) {
  const deadline = Date.now() + limit;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `${what}: not within ${limit / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
