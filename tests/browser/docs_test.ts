/** The documentation in a browser. */
import { startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

browserTest("the docs are read, searched and copied from, with the keyboard alone", async (browser) => {
  await using server = await startServer();
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
