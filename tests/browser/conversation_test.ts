/** A run in the page: the demo plan with the keyboard alone. */
import { startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

browserTest(
  "the demo plan is run, its call allowed and its answer read with the keyboard alone",
  async (browser) => {
    const server = await browser.use(startServer(["--no-auth"]));
    await browser.run(async ({ page, step, look, tabTo }, url) => {
      await page.goto(url);
      const conversation = page.getByRole("log", { name: "Conversation" });
      await step("the demo prompt is typed in", async () => {
        const prompt = page.getByRole("textbox", { name: "Prompt" });
        await prompt.waitFor();
        if (await prompt.inputValue() !== "What is 6 × 7?") throw new Error(await prompt.inputValue());
        await look("empty");
      });
      await page.keyboard.press("Enter");
      await step("the question shows the exact input", async () => {
        const question = page.getByRole("form").filter({ hasText: "expires in" });
        await question.getByText('"expression": "6*7"').waitFor();
        await look("waiting");
        await tabTo(question.getByRole("button", { name: "Allow", exact: true }));
      });
      await page.keyboard.press("Enter");
      await step("the answer is there, and the focus in the prompt", async () => {
        await conversation.getByText("6 × 7 is 42.").waitFor();
        await conversation.getByText("completed").waitFor();
        const focused = await page.evaluate("document.activeElement.getAttribute('aria-label')");
        if (focused !== "Prompt") throw new Error(`The focus is in ${focused}`);
        await look("completed");
      });
      await step("a denied call", async () => {
        await page.getByRole("textbox", { name: "Prompt" }).fill("What is 2 + 3?");
        await page.keyboard.press("Enter");
        const deny = page.getByRole("button", { name: /^Deny/ });
        await tabTo(deny);
        await page.keyboard.press("Enter");
        await deny.waitFor({ state: "hidden" });
        await conversation.getByText("completed").nth(1).waitFor();
        await look("denied");
      });
    }, server.url);
  },
);
