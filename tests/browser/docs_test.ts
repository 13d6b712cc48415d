/** The documentation in a browser. */
import { assertEquals } from "../assert.ts";
import { createPreamp } from "../../src/server/mod.ts";
import { startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

/** Starts a server whose API is below a path, as in another application. */
function serveDocs() {
  const preamp = createPreamp({ basePath: "/agents", authenticate: null });
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    (request) => preamp.fetch(request),
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/agents/docs`,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await preamp.close();
    },
  };
}

browserTest("the docs are read, searched and copied from, with the keyboard alone", async (browser) => {
  const server = await browser.use(startServer());
  await browser.run(async ({ page, step, look, tabTo }, url) => {
    await page.goto(`${url}/docs`);
    await look("docs-index");
    await step("a link leads to a page", async () => {
      await tabTo(page.getByRole("main").getByRole("link", { name: "plan", exact: true }));
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "The mount plan" }).waitFor();
      await look("docs-page");
    });
    await step("a copy button copies its block", async () => {
      await tabTo(page.getByRole("button", { name: "Copy" }).first());
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Copied" }).waitFor();
      const copied = await page.evaluate<string>("navigator.clipboard.readText()");
      if (!copied.startsWith("session:\n  orchestrator: loop-streaming")) throw new Error(copied);
    });
    await step("a search leads to a section of another page", async () => {
      await page.keyboard.press("/");
      await page.keyboard.type("raise limit");
      await page.getByRole("option").first().waitFor();
      await look("docs-search");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/docs\/[a-z-]+#/);
    });
  }, server.url);
}, { permissions: ["clipboard-read", "clipboard-write"] });

browserTest(
  "a search marks the section that it leads to; without a result it says so, and Escape leaves it",
  async (browser) => {
    const server = await browser.use(serveDocs());
    const ends = await browser.run(async ({ page, look, step }, url) => {
      await page.goto(url);
      await page.keyboard.press("/");
      await page.keyboard.type("error codes");
      const first = page.getByRole("option").first();
      await step("find", () => first.getByText("Errors").waitFor());
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("Enter");
      await step("go", () => page.waitForURL("**/docs/http#errors"));
      await page.getByRole("heading", { name: "Errors" }).waitFor();
      await step("mark", () => page.locator(".contents [aria-current]").getByText("Errors").waitFor());
      await page.keyboard.press("Control+k");
      await page.keyboard.type("<img src=x onerror=alert(1)>");
      await step("nothing", () => page.getByText("No section has all of these words.").waitFor());
      await look("docs-nothing-found");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      const focused = await page.evaluate("document.activeElement.tagName");
      return [focused, await page.getByRole("listbox").count()];
    }, server.url);
    assertEquals(ends, ["BODY", 0]);
  },
);

browserTest("no page is wider than a phone, and its contents are a disclosure", async (browser) => {
  const server = await browser.use(serveDocs());
  const wide = await browser.run(async ({ page }, url) => {
    await page.goto(url);
    const names = await page.locator(".pages a").evaluateAll((links) =>
      links.map((link) => link.getAttribute("href")!)
    );
    const wide: string[] = [];
    for (const name of names) {
      await page.goto(new URL(name, url).href);
      const width = await page.evaluate<number>("document.documentElement.scrollWidth");
      if (width > 390) wide.push(`${name} ${width}`);
    }
    await page.goto(`${url}/http`);
    const link = page.locator(".contents").getByRole("link", { name: "Errors", exact: true });
    if (await link.isVisible()) wide.push("the contents are open");
    await page.getByText("On this page").click();
    await link.click();
    await page.waitForURL("**/http#errors");
    return wide;
  }, server.url);
  assertEquals(wide, []);
}, { viewport: { width: 390, height: 844 } });

browserTest("without JavaScript there are contents and all pages, and no search", async (browser) => {
  const server = await browser.use(serveDocs());
  const seen = await browser.run(async ({ page }, url) => {
    await page.goto(url);
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "http", exact: true })
      .click();
    await page.waitForURL("**/docs/http");
    const contents = page.locator(".contents");
    await contents.getByRole("link", { name: "Errors" }).click();
    return { url: page.url(), search: await page.getByRole("search").count() };
  }, server.url);
  assertEquals(seen, { url: `${server.url}/http#errors`, search: 0 });
}, { javaScriptEnabled: false });

browserTest(
  "the documentation has the colours that were chosen on the page",
  async (browser) => {
    const server = await browser.use(serveDocs());
    await browser.run(async ({ page, step }, url) => {
      await page.goto(url.replace(/docs$/, ""));
      await page.getByRole("button", { name: "light or dark" }).click();
      await step("the page", () => page.locator("html[data-theme=dark]").waitFor());
      await page.getByRole("link", { name: "docs" }).click();
      await page.waitForURL(url);
      await step("the documentation", () => page.locator("html[data-theme=dark]").waitFor());
      await page.getByRole("link", { name: "preamp", exact: true }).click();
      await page.waitForURL(url.replace(/docs$/, ""));
    }, server.url);
  },
);
