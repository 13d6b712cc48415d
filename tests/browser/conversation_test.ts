/** A run in the page: the demo plan with the keyboard alone. */
import { ROOT, startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

browserTest(
  "the demo plan is run, its call allowed and its answer read with the keyboard alone",
  async (browser) => {
    const server = await browser.use(startServer(["--no-auth"]));
    await browser.run(async ({ page, context, step, look, tabTo }, url) => {
      await page.goto(url);
      const conversation = page.getByRole("log", { name: "Conversation" });
      await step("the demo prompt is typed in", async () => {
        const prompt = page.getByRole("textbox", { name: "Prompt" });
        await prompt.waitFor();
        await page.getByRole("banner").waitFor(); // one, the header of the HTML included
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
        const ticking = conversation.locator("time:not([aria-live=off])"); // would be read aloud each second
        if (await ticking.count() > 0) throw new Error("A time that changes is read aloud");
        const focused = await page.evaluate("document.activeElement.getAttribute('aria-label')");
        if (focused !== "Prompt") throw new Error(`The focus is in ${focused}`);
        await look("completed");
        const { nodes } = await (await context.newCDPSession(page)).send("Accessibility.getFullAXTree");
        const log = nodes.find(({ role, name }) => role?.value === "log" && name?.value === "Conversation");
        const live = log?.properties?.find(({ name }) => name === "live")?.value.value;
        if (live !== "polite") throw new Error(`A screen reader hears the answer: ${live}`);
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

browserTest("a run is steered and cancelled with the keyboard; sub-agents are nested", async (browser) => {
  const server = await browser.use(startServer(["--no-auth", "--plans", `${ROOT}plans/`]));
  await browser.run(async ({ page, step, look, tabTo }, url) => {
    const conversation = page.getByRole("log", { name: "Conversation" });
    await page.goto(url);
    await step("another plan runs", async () => {
      await page.getByRole("combobox", { name: "Plan", exact: true }).selectOption("everything");
      await page.getByText(/✓ \d+ modules/).waitFor();
      await page.getByRole("textbox", { name: "Prompt" }).fill("Plan the party");
      await page.keyboard.press("Enter");
      await page.getByRole("form", { name: "Let the calculator work out the bill?" }).waitFor();
    });
    await step("a text is sent to the agent while it waits", async () => {
      await page.getByRole("textbox", { name: "Steer the agent" }).focus();
      await page.keyboard.type("Book the room for Friday");
      await page.keyboard.press("Enter");
      await tabTo(page.getByRole("button", { name: "Allow", exact: true }), "Shift+Tab");
      await page.keyboard.press("Enter");
    });
    await step("at the limit of the plan a person may let it continue, or stop it", async () => {
      await page.getByRole("button", { name: "Raise to 8 and continue" }).waitFor();
      await tabTo(page.getByRole("button", { name: "Stop here" }), "Shift+Tab");
      await page.keyboard.press("Enter");
    });
    await step("it is in the conversation, and the sub-agent's work below its call", async () => {
      await conversation.getByText("incomplete").waitFor();
      await conversation.getByText("Book the room for Friday").waitFor();
      await conversation.getByRole("group", { name: "Sub-agent planner" }).getByText(
        "Two things are on the list.",
      )
        .waitFor();
      await look("sub-agent");
    });
    await step("the next run waits for its model, and is cancelled", async () => {
      await page.getByRole("button", { name: "New conversation" }).press("Enter");
      const editor = page.getByRole("textbox", { name: "Plan, as YAML or JSON" });
      await editor.fill([
        "session: { orchestrator: loop-streaming, context: context-simple }",
        "providers:",
        '  - { module: provider-mock, config: { responses: [{ text: "late", delay_ms: 600000 }] } }',
      ].join("\n"));
      await page.getByRole("textbox", { name: "Prompt" }).fill("Wait");
      await page.keyboard.press("Enter");
      await tabTo(page.getByRole("button", { name: /^Stop/ }));
      await page.keyboard.press("Enter");
      await conversation.getByText("cancelled").waitFor();
      await look("cancelled");
    });
  }, server.url);
});
