// Where the running stack is: one JSON object in LAZARET_E2E, as `cargo xtask test e2e` hands it over.
const text = process.env.LAZARET_E2E;
if (!text) throw new Error("LAZARET_E2E isn't set: run `cargo xtask test e2e`");

/** `{base_url, control_url, users: [{username, password, roles}]}` */
export const stack = JSON.parse(text);
