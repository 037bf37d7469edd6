// A line to the server that can be cut: what goes in at one loopback port comes out at another.
import { connect, createServer } from "node:net";
import { once } from "node:events";

/** `{address, cut(), mend()}`; cutting it ends what is under way and refuses what is new. */
export async function passThrough({ hostname, port }) {
  const open = new Set();
  let server;
  const listen = async (at) => {
    server = createServer((near) => {
      const far = connect(Number(port), hostname);
      for (const [from, to] of [[near, far], [far, near]]) {
        open.add(from);
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          open.delete(from);
          to.destroy();
        });
      }
    });
    server.listen(at, hostname);
    await once(server, "listening");
    return server.address().port;
  };
  const ours = await listen(0);
  return {
    address: `http://${hostname}:${ours}`,
    async cut() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, "close");
    },
    mend: () => listen(ours),
  };
}
