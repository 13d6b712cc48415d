/** `preamp/client` in a page of another origin, as a web application uses it. */
import type { PreampClient } from "../../src/client/mod.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { ROOT, startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";
import { startProxy } from "./loopback_proxy.ts";
import { ASKING } from "./runs.ts";

/** What a stream has given to the page, and its client. */
interface Streaming {
  readonly client: PreampClient;
  readonly seqs: number[];
  readonly connections: boolean[];
  run_id: string;
  text: string;
  over: boolean;
}

declare global {
  /** The client that the site's page imports. */
  var Client: typeof PreampClient;
  var streaming: Streaming;
}

/** Serves a page whose script is the bundled client. */
async function startSite(): Promise<AsyncDisposable & { readonly url: string }> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--platform", "browser", `${ROOT}src/client/mod.ts`],
  }).output();
  const types: Record<string, string> = { "/": "text/html", "/client.js": "text/javascript" };
  const bodies: Record<string, BodyInit> = {
    "/":
      `<!doctype html><html lang="en"><title>Site</title><link rel="icon" href="data:,"><script type="module">
      import { PreampClient } from "./client.js"; globalThis.Client = PreampClient;</script></html>`,
    "/client.js": stdout,
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    const type = types[pathname];
    return new Response(bodies[pathname] ?? null, {
      status: type === undefined ? 404 : 200,
      headers: { "content-type": type ?? "text/plain" },
    });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

browserTest(
  "a page of another origin streams over a cut connection and answers an approval",
  async (browser) => {
    const site = await browser.use(startSite());
    const server = await browser.use(startServer([], { env: { PREAMP_CORS_ORIGINS: site.url } }));
    const proxy = await browser.use(startProxy(server.url));
    const { url } = proxy;
    const { key } = server;
    await browser.run(async ({ page }, { site, url, key, plan }) => {
      await page.goto(site);
      await page.waitForFunction(() => "Client" in globalThis);
      await page.evaluate(({ url, key, plan }) => {
        const connections: boolean[] = [];
        const client = new Client({ url, key, onConnection: (connected) => connections.push(connected) });
        globalThis.streaming = { client, connections, seqs: [], run_id: "", text: "", over: false };
        const read = async () => {
          for await (
            const { seq, event, run_id, data } of client.stream({ prompt: "What is 6 × 7?", plan })
          ) {
            streaming.seqs.push(seq);
            if (event === "approval:required") streaming.run_id = run_id;
            if (event === "content_block:delta") streaming.text += String(data.delta);
          }
          streaming.over = true;
        };
        void read();
      }, { url, key, plan });
      await page.waitForFunction(() => streaming.run_id !== "");
    }, { site: site.url, url, key, plan: ASKING });
    proxy.cut();
    const { seqs, ...result } = await browser.run(async ({ page }) => {
      await page.waitForFunction(() => streaming.connections.includes(true));
      await page.evaluate(async () => {
        const { client, run_id } = streaming;
        const [approval] = (await client.listApprovals(run_id)).data;
        await client.answer(approval!, "allow");
      });
      await page.waitForFunction(() => streaming.over);
      return await page.evaluate(() => {
        const { seqs, text, connections } = streaming;
        return { seqs, text, connections };
      });
    });
    assertEquals(result, { text: "6 × 7 is 42.", connections: [false, true] });
    assertEquals(seqs, seqs.map((_, index) => index + 1));
    assertEquals((await browser.faults()).filter((fault) => !fault.includes("net::ERR_")), []);
  },
);

browserTest("a page of an origin that is not allowed gets nothing", async (browser) => {
  const site = await browser.use(startSite());
  const server = await browser.use(startServer());
  const result = await browser.run(async ({ page }, { site, url, key }) => {
    await page.goto(site);
    await page.waitForFunction(() => "Client" in globalThis);
    return await page.evaluate(
      ({ url, key }) => new Client({ url, key }).listRuns().then(() => "answered", (error) => error.name),
      { url, key },
    );
  }, { site: site.url, url: server.url, key: server.key });
  assertEquals(result, "TypeError");
  assertMatch((await browser.faults()).join(), /blocked by CORS policy/);
});
