/** The plan editor: colours, completion, what a key means, all findings at once, undo. */
import { ROOT, startServer } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";

/** What Deno, which knows no DOM, needs of a text area. */
interface Box {
  readonly value: string;
  readonly selectionStart: number;
}

browserTest("the plan editor colours, completes and explains a plan, with the keyboard", async (browser) => {
  const server = await browser.use(startServer(["--no-auth", "--plans", `${ROOT}plans/`]));
  await browser.run(async ({ page, step, look, tabTo }, url) => {
    await page.goto(url);
    const pane = page.getByRole("region", { name: "Plan", exact: true });
    const editor = pane.getByRole("textbox", { name: "Plan, as YAML or JSON" });
    const suggestions = page.getByRole("listbox", { name: "Suggestions" });
    const active = suggestions.locator('[aria-selected="true"] code');
    const help = pane.locator("#plan-help");
    /** Fails when the editor does not have a text before its cursor. */
    const expectBefore = async (wanted: string) => {
      const before = await editor.evaluate((element) => {
        const { value, selectionStart } = element as unknown as Box;
        return value.slice(0, selectionStart);
      });
      if (before !== wanted) throw new Error(JSON.stringify({ before, wanted }));
    };
    /** Waits until a suggestion is the active one, as a screen reader finds it, too. */
    const expectActive = async (label: string) => {
      await active.getByText(label, { exact: true }).waitFor();
      const id = await editor.getAttribute("aria-activedescendant");
      const text = await page.locator(`#${id}`).locator("code").textContent();
      if (text !== label) throw new Error(`the active descendant is ${text}`);
    };
    await pane.getByText("✓ 6 modules.").waitFor();

    await step("keys, texts, numbers, variables and comments have their colours", async () => {
      await tabTo(editor);
      await editor.fill(
        '# all\ntools: ["x"] # those\nsystem: |\n  of ${WORKSPACE}\nlimits: { max_tool_calls: 3 }\n',
      );
      const parts: Record<string, readonly string[]> = {
        key: ["tools", "system", "limits", "max_tool_calls"],
        comment: ["# all", "# those"],
        string: ['"x"', "  of "],
        variable: ["${WORKSPACE}"],
        number: ["3"],
      };
      for (const [kind, wanted] of Object.entries(parts)) {
        const last = wanted.at(-1);
        await page.locator(`.copy.${kind}[data-text=${JSON.stringify(last)}]`).waitFor();
        const found = await page.locator(`.copy.${kind}`).evaluateAll((elements) =>
          elements.map((element) => (element as unknown as { dataset: { text: string } }).dataset.text)
        );
        if (String(found) !== String(wanted)) throw new Error(`${kind}: ${JSON.stringify(found)}`);
      }
    });

    await step("a plan is written by suggestions: Tab and Enter take them, and the next opens", async () => {
      await editor.fill("");
      await page.keyboard.type("ses");
      await expectActive("session");
      await page.keyboard.press("Tab");
      await expectBefore("session:\n  ");
      await expectActive("orchestrator");
      await page.keyboard.press("Enter");
      await expectActive("loop-basic");
      await help.getByText("Calls the model and its tools in turn").waitFor();
      await page.keyboard.press("ArrowUp"); // from the first to the last
      await expectActive("loop-streaming");
      await look("plan-suggestions");
      await editor.press("Control+Space"); // a phone shows another pane, so the list has closed
      await expectActive("loop-basic");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await expectBefore("session:\n  orchestrator: loop-streaming");
      await suggestions.waitFor({ state: "hidden" });
    });

    await step("undo takes a suggestion back, and redo brings it again", async () => {
      await page.keyboard.press("Control+z");
      await expectBefore("session:\n  orchestrator: ");
      await page.keyboard.press("Control+y");
      await expectBefore("session:\n  orchestrator: loop-streaming");
    });

    await step("Enter continues a value that is complete, and Escape closes the list only", async () => {
      await page.keyboard.press("Enter");
      await page.keyboard.type("context: context-simple");
      await suggestions.waitFor({ state: "hidden" });
      await page.keyboard.press("Enter");
      await expectBefore("session:\n  orchestrator: loop-streaming\n  context: context-simple\n  ");
      await page.keyboard.type("raw");
      await expectActive("raw");
      await page.keyboard.press("Escape");
      await suggestions.waitFor({ state: "hidden" });
      await page.keyboard.press("Control+Space");
      await expectActive("raw");
      await page.keyboard.press("Enter");
      await expectActive("true");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Backspace");
      await page.keyboard.type(" f");
      await expectActive("false");
      await page.keyboard.press("Enter");
      await expectBefore(
        "session:\n  orchestrator: loop-streaming\n  context: context-simple\n  raw: false",
      );
    });

    await step("the config of a module is completed by its id, in JSON too", async () => {
      await editor.fill("");
      await page.keyboard.type('{ "hooks": [{ "module": "hooks-approval", "config": { "pre');
      await expectActive("preset");
      await page.keyboard.press("Tab");
      await expectActive("read-only");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await expectBefore('{ "hooks": [{ "module": "hooks-approval", "config": { "preset": "ask-writes"');
    });

    await step("without a list, Tab leaves the editor", async () => {
      await page.keyboard.type(" ");
      await suggestions.waitFor({ state: "hidden" });
      await page.keyboard.press("Tab");
      await page.locator(":focus:not(#plan-text)").waitFor();
    });

    await step("the key at the cursor is explained, and the one at the pointer", async () => {
      const demo =
        "session:\n  orchestrator: loop-streaming\n  context: context-simple\nlimits: { on_limit: end }\n";
      await editor.fill(demo);
      await editor.press("Control+Home");
      await help.getByText("The loop, the context, and what belongs to both").waitFor();
      await page.locator('.copy[data-text="on_limit"]').hover({ force: true });
      const tip = page.getByRole("tooltip");
      await tip.getByText("one of end, pause").waitFor();
      await tip.getByText('default "end"').waitFor();
      await look("plan-hover", "plan");
      await editor.focus();
      await page.locator('.copy[data-text="on_limit"]').hover({ force: true });
      await tip.waitFor();
      await page.keyboard.press("Escape");
      await tip.waitFor({ state: "hidden" });
      await page.locator("#plan-text:focus").waitFor();
    });

    await step("where nothing is known, it says so", async () => {
      await editor.fill("# a comment");
      await page.keyboard.press("Control+Space");
      await help.getByText("Nothing is known that could be written here").waitFor();
    });

    await step("the list follows the cursor when the editor scrolls", async () => {
      await editor.fill("# a comment\n".repeat(100));
      await page.keyboard.press("Control+End");
      await page.keyboard.type("ses");
      await expectActive("session");
      await page.keyboard.press("Enter");
      await expectActive("orchestrator");
      await page.locator(".editor").evaluate((element) => {
        (element as unknown as { scrollTop: number }).scrollTop = 0;
      });
      await suggestions.waitFor({ state: "hidden" });
    });

    await step("a click takes a suggestion", async () => {
      await editor.fill("");
      await page.keyboard.type("mod");
      await suggestions.getByRole("option", { name: /^model / }).click();
      await expectBefore("model: ");
    });
  }, server.url);
});

browserTest("all findings of a plan are marked at their lines and lead there", async (browser) => {
  const server = await browser.use(startServer(["--no-auth"]));
  await browser.run(async ({ page, step, look, tabTo }, url) => {
    await page.goto(url);
    const pane = page.getByRole("region", { name: "Plan", exact: true });
    const editor = pane.getByRole("textbox", { name: "Plan, as YAML or JSON" });
    await pane.getByText("✓ 6 modules.").waitFor();
    const lines = [
      "session:",
      "  orchestrator: loop-streaming",
      "  contxt: context-simple",
      "limts: {}",
      "providers: [provider-mock]",
      "tools:",
      "  - module: tool-todo",
      "    isolation: nowhere",
      "  - { module: tool-calculator, colour: green }",
      "  - { module: tool-bash, config: { timeout_s: soon } }",
    ];
    await tabTo(editor);
    await editor.fill(lines.join("\n"));
    const list = pane.getByRole("list", { name: "Findings" });
    for (const place of ["line 1", "line 3", "line 4", "line 8", "line 9", "line 10"]) {
      await step(place, () => list.getByText(place, { exact: true }).first().waitFor());
    }
    const marks = await page.locator(".lines > :is(.error, .warning)").evaluateAll((elements) =>
      elements.map((element) => {
        const { className, textContent } = element as unknown as { className: string; textContent: string };
        return `${className} ${textContent.slice(0, 1)}`;
      })
    );
    const wanted = ["error ✗", "error ✗", "error ✗", "error ✗", "warning !", "error ✗"];
    if (String(marks) !== String(wanted)) throw new Error(String(marks));
    await look("plan-findings", "plan");
    await step("a finding leads to its line", async () => {
      const last = list.getByRole("button").filter({ hasText: "line 8" });
      await tabTo(last);
      await page.keyboard.press("Enter");
      await page.locator("#plan-text:focus").waitFor();
      await page.locator(".at-line").getByText("nowhere").waitFor();
      const before = await editor.evaluate((element) => {
        const { value, selectionStart } = element as unknown as Box;
        return value.slice(0, selectionStart).split("\n").length;
      });
      if (before !== 8) throw new Error(`the cursor is in line ${before}`);
    });
  }, server.url);
});
