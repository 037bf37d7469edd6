// The same API that the pages use, asked with the page's session.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { stack } from "./stack.mjs";

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

/** Acts on a path below `/api/v1` as the page's reader; `version` is the one that was seen. Takes a refusal for an answer. */
export function tryAct(page, method, path, data, version) {
  const headers = { Origin: stack.base_url, "Idempotency-Key": randomUUID() };
  if (version !== undefined) headers["If-Match"] = `"${version}"`;
  return page.request.fetch(`/api/v1${path}`, { method, headers, data });
}

/** Acts; shows the password again first. Fails on a refusal. */
export async function act(page, username, method, path, data) {
  const { password } = stack.users.find((user) => user.username === username);
  const confirmed = await tryAct(page, "POST", "/session/confirm", { password });
  assert.ok(confirmed.ok(), await confirmed.text());
  const answer = await tryAct(page, method, path, data);
  assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
  return answer.json();
}
