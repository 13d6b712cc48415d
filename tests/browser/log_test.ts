/** The log pane: a long log, one entry, what a model was sent, limits. Used with the keyboard alone. */
import { assert, assertEquals } from "../assert.ts";
import { browserTest } from "./browser.ts";
import { runWith, scripted, startPageServer, startRun } from "./runs.ts";

const TOOLS = { tools: ["tool-todo"] };
const LIST = { name: "todo", arguments: { action: "list" } };
/** An answer of a model that calls a tool, or calls it often. */
const list = (text: string, calls = 1) => ({ text, tool_calls: Array.from({ length: calls }, () => LIST) });

browserTest(
  "a log of 5,000 entries draws what is visible, and is read with the keyboard",
  async (browser) => {
    const answers = Array.from({ length: 25 }, (_, index) => list(`Step ${index}.`, 45));
    const server = await browser.use(startPageServer(["--limits.max_tool_calls", "2000"]));
    const id = await startRun(
      server,
      scripted([...answers, "Listed."], { ...TOOLS, limits: { max_tool_calls: 2000 } }),
    );
    await runWith(server, id, "completed");
    const seen = await browser.run(async ({ page, step }, url) => {
      await page.goto(url);
      await step("the trace is first: what took time", async () => {
        await page.getByRole("region", { name: "Trace" }).getByText("model").first().waitFor();
      });
      await page.getByRole("button", { name: "entries" }).press("Enter");
      const log = page.getByRole("listbox", { name: "Entries of the log" });
      await step("follows the end", () => log.getByRole("option", { name: /run:end ✓ completed/ }).waitFor());
      const drawn = await log.getByRole("option").count();
      const size = Number(await log.getByRole("option").last().getAttribute("aria-setsize"));
      await page.getByRole("combobox", { name: "Kind of entries" }).selectOption("tools");
      await page.keyboard.press("Escape");
      await page.getByRole("searchbox", { name: "Search the log" }).fill('"step 7."');
      await step("search in a kind", () => page.getByText("0 rows of this kind").waitFor());
      await page.getByRole("combobox", { name: "Kind of entries" }).selectOption("all");
      await step("search in all", () => page.getByText(/^[1-9] rows of this kind$/).waitFor());
      await log.focus();
      await page.keyboard.press("Home");
      await page.keyboard.press("Enter");
      const entry = page.getByRole("group", { name: / as JSON$/ });
      await step("one entry whole", () => entry.getByText("Step 7.").waitFor());
      await page.keyboard.press("Escape");
      await step("closed", () => entry.waitFor({ state: "detached" }));
      return { drawn, size };
    }, `${server.url}/#/runs/${id}`);
    assert(seen.size > 5_000, `${seen.size} rows`);
    assert(seen.drawn > 5 && seen.drawn < 60, `${seen.drawn} rows are drawn`);
  },
);

browserTest("what a model was sent says what is new in each call; a replay is equal", async (browser) => {
  const server = await browser.use(startPageServer());
  const id = await startRun(server, scripted([list("One."), list("Two."), "Done."], TOOLS), "Count");
  await runWith(server, id, "completed");
  const messages = await browser.run(async ({ page, step, look }, url) => {
    await page.goto(url);
    const trace = page.getByRole("region", { name: "Trace" });
    await step("three calls of the model and two of a tool", async () => {
      await trace.getByRole("listitem").nth(4).waitFor();
      const rows = await trace.getByRole("listitem").allInnerTexts();
      const kinds = rows.map((row) => row.split(/\s+/).slice(0, 2).join(" "));
      if (kinds.join() !== "model mock,tool todo,model mock,tool todo,model mock") {
        throw new Error(JSON.stringify(rows));
      }
      await look("trace", "log");
    });
    await page.getByRole("button", { name: "entries" }).press("Enter");
    const log = page.getByRole("listbox", { name: "Entries of the log" });
    await step("the end", () => log.getByRole("option", { name: /run:end/ }).waitFor());
    await log.press("3"); // the pane that a narrow screen shows
    await log.press("ArrowUp");
    await log.press("Enter");
    const entry = page.getByRole("group", { name: / as JSON$/ });
    await step("the last entry", () => entry.getByText("run:end").waitFor());
    await look("log-entry");
    await log.press("Escape");
    await page.getByRole("button", { name: "What the model was sent in call 2" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "What the model was sent" });
    const shown = async () => {
      await step("loaded", () => dialog.getByText("options").waitFor());
      const texts = await dialog.locator("summary").allInnerTexts();
      return texts.map((text) => text.replace(/\s+/g, " ").replace(/ ?\d+ tokens$/, ""));
    };
    const second = await shown();
    await look("sent");
    await page.keyboard.press("ArrowRight");
    await step("next call", () => dialog.getByText("in call 3 of 3").waitFor());
    const third = await shown();
    await page.keyboard.press("Escape");
    await step("closed", () => dialog.waitFor({ state: "detached" }));
    await page.getByRole("button", { name: "Replay" }).press("Enter");
    await step("equal", () => page.getByText("✓ equal").waitFor());
    await look("replay-equal", "log");
    return [second, third];
  }, `${server.url}/#/runs/${id}`);
  assertEquals(messages.map((texts) => texts.filter((text) => text.includes("+ new")).map(roleOf)), [
    ["assistant One.", "tool"],
    ["assistant Two.", "tool"],
  ]);
  assertEquals(messages[1]!.slice(0, 2).map(roleOf), ["user", "assistant One."]);
});

/** Returns the role in a line, and the text of an assistant. */
function roleOf(text: string): string {
  return /^(assistant \S+|\S+)/.exec(text)![0];
}

browserTest("a limit is raised at its gauge, and the run continues", async (browser) => {
  const server = await browser.use(startPageServer());
  const limits = { max_tool_calls: 1, on_limit: "pause" };
  const id = await startRun(server, scripted([list("One."), list("Two."), "Done."], { ...TOOLS, limits }));
  await runWith(server, id, "awaiting_limit");
  await browser.run(async ({ page, step, look }, url) => {
    await page.goto(url);
    const raise = page.getByRole("button", { name: "Raise the limit of tool calls" });
    await raise.press("3"); // the pane that a narrow screen shows
    await raise.press("Enter");
    await look("raise", "log");
    const field = page.getByRole("region", { name: "Log" }).getByRole("textbox", { name: "new limit" });
    await field.fill("many"); // is not sent
    await field.press("Enter");
    await field.fill("1");
    await field.press("Enter");
    await step("refused", () => page.getByRole("alert").getByText("must be above 1").waitFor());
    await field.fill("5");
    await field.press("Enter");
    await step("continues", () => page.getByText("2 of 5").waitFor());
    await step("has ended", () => page.getByText("✓ completed").first().waitFor());
    await step("nothing to raise", () => raise.waitFor({ state: "detached" }));
  }, `${server.url}/#/runs/${id}`);
  const [refusal, ...rest] = await browser.faults();
  assert(/^status: POST .*limits 400$/.test(refusal!), refusal);
  assertEquals(rest.length, 1, "Chromium's line about it in the console");
});
