/** The page below a path: of an application, with and without a slash, and of a proxy that removes it. */
import { createPreamp, type PreampOptions } from "../../src/server/mod.ts";
import { browserTest } from "./browser.ts";

/** Serves the API; `path` is what a proxy in front of it removes from each request. */
function serveBelow(path: string, options: PreampOptions) {
  const preamp = createPreamp({ authenticate: null, ...options });
  const { addr, shutdown } = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname, search, origin } = new URL(request.url);
    return pathname.startsWith(path)
      ? preamp.fetch(new Request(origin + pathname.slice(path.length) + search, request))
      : new Response(null, { status: 404 });
  });
  return {
    origin: `http://127.0.0.1:${addr.port}`,
    async [Symbol.asyncDispose]() {
      await shutdown();
      await preamp.close();
    },
  };
}

for (
  const [address, removed, options] of [
    ["/agents", "", { basePath: "/agents" }],
    ["/agents/", "", { basePath: "/agents" }],
    ["/agents/", "/agents", { basePath: "/agents" }], // as Hono's mount()
    ["/some/proxy/", "/some/proxy", {}],
  ] as const
) {
  browserTest(
    `a run is answered at ${address}, of which ${removed || "nothing"} is removed`,
    async (browser) => {
      const server = await browser.use(serveBelow(removed, options));
      await browser.run(async ({ page, step }, url) => {
        await page.goto(url);
        await page.getByRole("textbox", { name: "Prompt" }).waitFor();
        await page.keyboard.press("Enter");
        await page.getByRole("button", { name: "Allow", exact: true }).click();
        const answer = page.getByRole("log", { name: "Conversation" }).getByText("6 × 7 is 42.");
        await step("the answer is there", () => answer.waitFor());
        await page.reload();
        await step("the answer is there after a reload", () => answer.waitFor());
      }, server.origin + address);
    },
  );
}
