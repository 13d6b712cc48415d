/** The plan pane: findings at their lines, what a plan may touch, what a change widens, drafts. */
import { ROOT, startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

/** What Deno, which knows no DOM, needs of a text area. */
interface Cursor {
  readonly value: string;
  readonly selectionStart: number;
  readonly scrollTop: number;
  readonly ownerDocument: { readonly activeElement: unknown };
}

browserTest(
  "a plan is changed, checked, explained and compared with the keyboard before it runs",
  async (browser) => {
    const server = await browser.use(startServer(["--no-auth", "--plans", `${ROOT}plans/`]));
    await browser.run(async ({ page, step, look, tabTo }, url) => {
      await page.goto(url);
      const pane = page.getByRole("region", { name: "Plan", exact: true });
      const editor = pane.getByRole("textbox", { name: "Plan, as YAML or JSON" });
      await step("the demo plan is there, with a sentence about it", async () => {
        await pane.getByText("✓ 6 modules. May touch nothing outside").waitFor();
        await look("plan-valid", "plan");
      });
      const demo = await editor.inputValue();
      await step("an error is shown at line 4, and a key leads to it", async () => {
        await tabTo(editor);
        await editor.fill(demo.replace("system:", "sytem:"));
        await pane.getByText("✗ 1 error").waitFor();
        await tabTo(pane.getByRole("list", { name: "Findings" }).getByRole("button"));
        await page.keyboard.press("Enter");
        const before = await editor.evaluate((element) => {
          const { value, selectionStart, ownerDocument } = element as unknown as Cursor;
          return element === ownerDocument.activeElement
            ? value.slice(0, selectionStart)
            : "not in the editor";
        });
        if (before !== demo.slice(0, demo.indexOf("system:"))) throw new Error(before);
        await look("plan-error", "plan");
      });
      await step(
        "Enter continues the indentation, Control and a bracket changes it, undo works",
        async () => {
          await editor.fill("");
          await page.keyboard.type("tools:\n- tool-todo");
          await page.keyboard.press("Control+BracketLeft");
          const typed = await editor.inputValue();
          await page.keyboard.press("Control+z");
          const undone = await editor.inputValue();
          if (typed !== "tools:\n- tool-todo" || undone !== "tools:\n  - tool-todo") {
            throw new Error(JSON.stringify({ typed, undone }));
          }
        },
      );
      await step("the numbers of the lines scroll with a plan that is longer than its box", async () => {
        await editor.fill(`${demo}${"# a comment\n".repeat(100)}`);
        await page.keyboard.press("Control+End");
        const scrolled = await editor.evaluate((element) => (element as unknown as Cursor).scrollTop);
        if (scrolled > 0) throw new Error(`the text alone is scrolled by ${scrolled} px`);
      });
      await step("a change that widens is said before the run", async () => {
        await editor.fill(demo.slice(0, demo.indexOf("hooks:")));
        const widens = pane.getByRole("button", { name: "▲ 1 change widens what it may do" });
        await tabTo(widens);
        await page.keyboard.press("Enter");
        await pane.getByText('hook "hooks-approval" was removed').waitFor();
        await look("plan-widens", "plan");
      });
      await step("another plan is explained, and the changes are kept", async () => {
        const plans = pane.getByRole("combobox", { name: "Plan" });
        await plans.selectOption("calculator");
        await tabTo(pane.getByRole("button", { name: "explain" }), "Shift+Tab");
        await page.keyboard.press("Enter");
        await pane.getByRole("row", { name: "tool-calculator" }).getByText("touch nothing outside").waitFor();
        await pane.getByText("✓ 5 modules.").waitFor();
        await look("plan-explained", "plan");
        await plans.selectOption({ label: "demo, your changes" });
        await pane.getByRole("combobox", { name: "Plan" }).getByText("demo, changed").waitFor({
          state: "attached",
        });
        if (await editor.inputValue() !== demo.slice(0, demo.indexOf("hooks:"))) throw new Error("lost");
      });
      await step("the changed plan runs, and does not ask", async () => {
        await tabTo(editor, "Shift+Tab");
        await page.keyboard.press("Control+Enter");
        await page.getByRole("log", { name: "Conversation" }).getByText("completed").waitFor();
        await pane.waitFor({ state: "hidden" }); // it is folded away while a conversation is on
        await page.locator("textarea[aria-label=Prompt]:focus").waitFor();
        await tabTo(page.getByRole("button", { name: "Open the plan" }), "Shift+Tab");
        await page.keyboard.press("Enter");
        await pane.getByRole("button", { name: "link" }).waitFor();
      });
      await step("a phone shows the pane as a tab", async () => {
        await page.setViewportSize({ width: 390, height: 844 });
        await page.getByRole("tab", { name: "plan" }).click();
        await editor.waitFor();
        await look("plan-tab");
      });
    }, server.url);
  },
);
