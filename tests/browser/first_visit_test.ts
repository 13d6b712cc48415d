/** What a person does who opens the page for the first time, without a mouse and without the docs. */
import { startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

browserTest(
  "on a first visit the demo plan is changed, run, asked about, let over a limit, read, forked and compared with the keyboard",
  async (browser) => {
    const server = await browser.use(startServer(["--no-auth"]));
    await browser.run(async ({ page, step, look, tabTo }, url) => {
      const button = (name: string | RegExp) => page.getByRole("button", { name });
      const pane = page.getByRole("region", { name: "Plan", exact: true });
      const editor = page.getByRole("textbox", { name: "Plan, as YAML or JSON" });
      const conversation = page.getByRole("log", { name: "Conversation" });
      const questions = page.getByRole("region", { name: "Questions" });
      await page.goto(url);
      await step("the demo's prompt is typed in", async () => {
        const prompt = page.getByRole("textbox", { name: "Prompt" });
        await pane.getByText("✓ 6 modules").waitFor();
        if (await prompt.inputValue() !== "What is 6 × 7?") throw new Error(await prompt.inputValue());
        await look("visit-1-open");
      });
      await step("the plan is changed, and the page says what it may do", async () => {
        await tabTo(editor, "Shift+Tab");
        await page.keyboard.press("Control+End");
        await page.keyboard.type("limits: { max_iterations: 1, on_limit: pause }");
        await pane.getByText("✓ 6 modules. May touch nothing outside").waitFor();
        await tabTo(button("explain"), "Shift+Tab");
        await page.keyboard.press("Enter");
        await pane.getByRole("row", { name: "tool-calculator" }).waitFor();
        await look("visit-2-explained", "plan");
      });
      await step("it asks before the call, and says its exact input", async () => {
        await tabTo(page.getByRole("textbox", { name: "Prompt" }));
        await page.keyboard.press("Enter");
        await questions.getByText('"expression": "6*7"').waitFor();
        await look("visit-3-asks");
        await tabTo(questions.getByRole("button", { name: "Allow", exact: true }));
        await page.keyboard.press("Enter");
      });
      await step("it waits at the limit, which is raised in place", async () => {
        const limit = questions.getByRole("textbox", { name: "new limit" });
        await limit.waitFor();
        await look("visit-4-limit");
        await tabTo(limit);
        await page.keyboard.press("Control+a");
        await page.keyboard.type("5");
        await page.keyboard.press("Enter");
        await conversation.getByText("6 × 7 is 42.").waitFor();
        await conversation.getByText("completed").waitFor();
        await look("visit-5-answered");
      });
      await step("what the model was sent in the second call", async () => {
        await tabTo(button("What the model was sent in call 2"));
        await page.keyboard.press("Enter");
        const dialog = page.getByRole("dialog", { name: "What the model was sent" });
        await dialog.getByText("in call 2 of 2").waitFor();
        await dialog.getByText("You are the demo agent of Preamp. Be brief.").first().waitFor();
        await look("visit-6-sent");
        await tabTo(dialog.getByRole("button", { name: "Fork from here" }));
        await page.keyboard.press("Enter");
      });
      await step("from there again, with another system prompt", async () => {
        await page.getByRole("region", { name: "What if" }).waitFor();
        await tabTo(editor, "Shift+Tab");
        const text = await editor.inputValue();
        await editor.fill(text.replace("Be brief.", "Answer in rhyme."));
        await look("visit-7-fork");
        await tabTo(button(/^Run from entry/));
        await page.keyboard.press("Enter");
      });
      await step("both runs are side by side", async () => {
        await page.getByText(/[=≠] (B does the same as A|First difference)/).waitFor();
        await page.getByText('+ "You are the demo agent of Preamp. Answer in rhyme."').waitFor();
        await page.getByRole("region", { name: "Run B" }).getByText("completed").waitFor();
        await look("visit-8-compared");
      });
    }, server.url);
  },
);

browserTest(
  "on a first visit three examples run with one click; later the conversations are listed, and a model is one press away",
  async (browser) => {
    const server = await browser.use(startServer(["--no-auth"]));
    await browser.run(async ({ page, step, look }, url) => {
      const examples = page.getByRole("list", { name: "Examples" });
      const earlier = page.getByRole("list", { name: "Earlier conversations" });
      const conversation = page.getByRole("log", { name: "Conversation" });
      const questions = page.getByRole("region", { name: "Questions" });
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      await page.goto(url);
      await step("a call that is asked about", async () => {
        await examples.getByRole("button", { name: "What is 6 × 7?" }).waitFor();
        await look("first-examples");
        await examples.getByRole("button", { name: "What is 6 × 7?" }).click();
        await questions.getByRole("button", { name: "Allow", exact: true }).click();
        await conversation.getByText("6 × 7 is 42.").waitFor();
        await conversation.getByText("completed").waitFor();
      });
      await step("the conversation is listed, and opened from there", async () => {
        await button("New conversation").click();
        await earlier.getByRole("button", { name: "What is 6 × 7?" }).waitFor();
        await examples.waitFor({ state: "detached" });
        await look("first-earlier");
        await earlier.getByRole("button", { name: "What is 6 × 7?" }).click();
        await conversation.getByText("6 × 7 is 42.").waitFor();
      });
      await step("the model is one press away", async () => {
        await button("New conversation").click();
        await button("Fold the plan away").click();
        await button("Use my model").click();
        await page.getByRole("textbox", { name: "model", exact: true }).and(page.locator(":focus")).waitFor();
      });
    }, server.url);
    for (
      const [prompt, end] of [["How much water", "Take 12 litres"], ["What is 12", "12 * (3 + 4) is 84"]]
    ) {
      const other = await browser.use(startServer(["--no-auth"]));
      await browser.run(async ({ page, step, look }, { url, prompt, end }) => {
        await page.goto(url);
        await step(prompt, async () => {
          await page.getByRole("list", { name: "Examples" }).getByRole("button", { name: prompt }).click();
          const conversation = page.getByRole("log", { name: "Conversation" });
          if (prompt === "What is 12") {
            const limit = page.getByRole("textbox", { name: "new limit" });
            await limit.fill("5");
            await limit.press("Enter");
          }
          await conversation.getByText(end).waitFor();
          await conversation.locator(".run-end").getByText("completed").waitFor();
          await look(`first-${end.slice(0, 4)}`);
        });
      }, { url: other.url, prompt: prompt!, end: end! });
    }
  },
);
