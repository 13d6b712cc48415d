/** What tests of the page rely on: the harness sees what a page does wrong. */
import { assertEquals, assertMatch } from "../assert.ts";
import { browserTest } from "./browser.ts";

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src *";
const PAGE =
  `<!doctype html><html lang="en"><head><title>Faulty</title><link rel="stylesheet" href="/none.css">
  </head><body><main><h1>Faulty</h1><button></button><script>alert("inline")</script></main></body></html>`;

browserTest(
  "the faults of a page are seen: axe-core's findings, refused scripts, other hosts",
  async (browser) => {
    const server = await browser.use(
      Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
        if (new URL(url).pathname !== "/") return new Response(null, { status: 404 });
        return new Response(PAGE, {
          headers: { "content-type": "text/html", "content-security-policy": POLICY },
        });
      }),
    );
    await browser.run(async ({ page }, url) => {
      await page.goto(url);
    }, `http://127.0.0.1:${server.addr.port}/`);
    const faults = await browser.faults();
    for (const fault of [/^console: .*violates.*script-src 'self'/, /^status: GET .*none\.css 404/]) {
      assertEquals(faults.filter((one) => fault.test(one)).length, 1, faults.join("\n"));
    }
    await browser.run(({ look }) => look("faulty"));
    const found = (await browser.faults()).filter((fault) => fault.includes(": button-name: "));
    assertEquals(found.map((fault) => fault.split(":")[1]), [
      " faulty light",
      " faulty dark",
      " faulty phone",
    ]);
    await browser.run(async ({ page }) => {
      await page.evaluate(() => fetch("http://other.invalid/").catch(() => {}));
    });
    assertMatch((await browser.faults()).join("\n"), /^host: http:\/\/other\.invalid\/$/m);
    await browser.run(({ page }) => page.evaluate("alert('dialog')"));
    assertEquals(await browser.faults(), ["dialog: dialog"]);
  },
);

browserTest(
  "a test fails with the browser's error and the page as a screen reader finds it",
  async (browser) => {
    const error = await browser.run(async ({ page, step }) => {
      await page.setContent("<h1>Somewhere</h1>");
      await step("press Run", () => page.getByRole("button", { name: "Run" }).click({ timeout: 10 }));
    }).catch((error: Error) => error);
    assertMatch(String(error), /press Run: locator\.click: Timeout[\s\S]*The page:\n- heading "Somewhere"/);
  },
);
