/** Hostile text of models and tools: nothing runs or loads, and the page stays usable. */
import { assert, assertEquals } from "../assert.ts";
import { type Browser, browserTest } from "./browser.ts";
import { runWith, SAY, saying, scripted, startPageServer, startRun } from "./runs.ts";
import type { ServerProgram } from "../e2e/program.ts";

const RUNS = "globalThis.hacked=1;alert('hacked')";
const MARKUP = [
  `<script>${RUNS}</script><img src=x onerror="${RUNS}"><svg onload="${RUNS}"></svg>`,
  `<iframe srcdoc="<script>parent.hacked=1</script>"></iframe><style>* { display: none }</style>`,
  `[link](javascript:${RUNS}) [data](data:text/html,<script>${RUNS}</script>) <javascript:${RUNS}>`,
  `[spaced](<java\tscript:${RUNS}>) [entity](javascript&colon;${RUNS}) [vb](vbscript:x) [blob](blob:x)`,
  "![image](http://other.invalid/pixel.png) [ref]\n\n[ref]: javascript:globalThis.hacked=1",
  "before \u202edekcah\u202c after \u2066hidden\u2069 \u0007 \x1b[31mred\x1b[0m \u200b \ufeff",
  "<a href='javascript:globalThis.hacked=1'>anchor</a> <form action='http://other.invalid'><button>send</button></form>",
  "```html\n<script>globalThis.hacked=1</script>\n```",
].join("\n\n");
const CONTROLS = "before U+202Edekcah";

browserTest("markup, links and control characters of models and tools are text", async (browser) => {
  const server = await browser.use(startPageServer());
  const asks = {
    module: "hooks-approval",
    config: { rules: [{ tool: "say", action: "ask", prompt: MARKUP }] },
  };
  const plan = scripted(
    [
      { text: MARKUP, thinking: MARKUP, tool_calls: [{ name: "say", arguments: { [MARKUP]: MARKUP } }] },
      MARKUP,
    ],
    { system: MARKUP, tools: [saying(JSON.stringify(MARKUP))], hooks: [asks] },
  );
  const id = await startRun(server, plan, MARKUP);
  await runWith(server, id, "awaiting_approval");
  await browser.run(async ({ page, step, look }, { url, controls }) => {
    await page.goto(url);
    await step("the question shows its input", async () => {
      await page.getByRole("form").getByText(controls).first().waitFor();
      await look("hostile-question");
    });
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await step("the answer shows control characters", async () => {
      await page.getByText("completed").first().waitFor();
      for (const part of await page.getByRole("log").locator("summary").all()) await part.click();
      await look("hostile-answer");
    });
    await step("what the model was sent, and an entry of the log", async () => {
      await page.getByRole("button", { name: "What the model was sent in call 2" }).press("Enter");
      await page.getByRole("dialog", { name: "What the model was sent" }).getByText("options").waitFor();
      await look("hostile-sent");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "entries" }).click();
      await page.getByRole("option", { name: /tool:post/ }).click();
      await page.getByRole("group", { name: / as JSON$/ }).waitFor();
      await look("hostile-entry", "log");
    });
    await step("links lead to the web only, and in another tab", async () => {
      for (const link of await page.getByRole("log").getByRole("link").all()) {
        const href = await link.getAttribute("href") ?? "";
        if (!/^(https?:|mailto:)/.test(href)) throw new Error(href);
        if (!/noopener/.test(await link.getAttribute("rel") ?? "")) throw new Error("rel");
      }
    });
    await step("nothing was run or loaded", async () => {
      const found = await page.evaluate(() => [
        "hacked" in globalThis,
        // deno-lint-ignore no-explicit-any
        (globalThis as any).document.querySelectorAll(
          "body script, body style, img, iframe, form[action], [onload], [onerror]",
        ).length,
      ]);
      if (String(found) !== "false,0") throw new Error(String(found));
    });
  }, { url: `${server.url}/#/runs/${id}`, controls: CONTROLS });
  assertEquals(await browser.faults(), []);
});

/** Milliseconds of processor time that the page may take for a text; without bounds, some take a minute. */
const BOUND_MS = 10_000;

/**
 * Returns milliseconds of the page's processor time until a run's last text is shown, its calls are open,
 * keys are typed, and its log is searched.
 */
async function timeToOpen(browser: Browser, server: ServerProgram, id: string): Promise<number[]> {
  return await browser.run(async ({ page, context }, url) => {
    const times: number[] = [];
    let begin = 0;
    await page.goto("about:blank");
    await page.goto(url);
    const tools = await context.newCDPSession(page);
    await tools.send("Performance.enable", { timeDomain: "threadTicks" });
    const lap = async () => {
      const { metrics } = await tools.send("Performance.getMetrics");
      const end = 1000 * metrics.find(({ name }) => name === "TaskDuration")!.value;
      times.push(Math.round(end - begin));
      begin = end;
    };
    await page.getByRole("log").getByText("completed").waitFor({ timeout: 120_000 });
    await lap();
    for (const part of await page.getByRole("log").locator("summary").all()) await part.click();
    await lap();
    const prompt = page.getByRole("textbox", { name: "Prompt" });
    await prompt.pressSequentially("still there");
    if (await prompt.inputValue() !== "still there") throw new Error(await prompt.inputValue());
    await lap();
    await page.getByRole("button", { name: "entries" }).click();
    await page.getByRole("searchbox", { name: "Search the log" }).fill("nowhere");
    await page.getByText("0 rows of this kind").waitFor();
    await lap();
    await tools.detach();
    return times;
  }, `${server.url}/#/runs/${id}`);
}

browserTest("huge and pathological texts do not freeze the page", async (browser) => {
  const server = await browser.use(startPageServer());
  const texts: Record<string, string> = {
    "a line of 150,000 characters": "x".repeat(150_000),
    "nested quotes": `${">".repeat(5_000)} deep`,
    "nested items": `${"- ".repeat(10_000)}deep`,
    "an address": `${"a".repeat(150_000)}@`,
    "strikes in paragraphs": `${"~~a ~b **c _d ".repeat(600)}\n\n`.repeat(18),
    "nested emphasis": `${"*a **b ".repeat(2_000)}deep${"** *".repeat(2_000)}`,
    "a table of 2,000 columns": `${"|a".repeat(2_000)}|\n${"|-".repeat(2_000)}|\n${"|b".repeat(2_000)}|`,
    "control characters": "\u202e\x1b[0m".repeat(20_000),
  };
  const plans = Object.entries(texts).map(([name, text]) => [name, scripted([text])]);
  plans.push(["a result of 10 MB", scripted([SAY, "Done."], { tools: [saying(`"x".repeat(10e6)`)] })]);
  for (const [name, plan] of plans) {
    const id = await startRun(server, plan);
    await runWith(server, id, "completed");
    const times = await timeToOpen(browser, server, id);
    assert(Math.max(...times) < BOUND_MS, `${name}: ${times} ms`);
  }
});

browserTest(
  "a pane that cannot draw an answer says so, and leaves the others as they are",
  async (browser) => {
    const server = await browser.use(startPageServer());
    await browser.run(async ({ page, step }, url) => {
      await page.route("**/v1/plans/explain", (route) => route.fulfill({ json: { modules: 1 } }));
      await page.goto(url);
      await step(
        "the plan pane says it",
        () => page.getByRole("region", { name: "Plan", exact: true }).getByRole("alert").waitFor(),
      );
      await step("the conversation runs the prompt", async () => {
        await page.getByRole("textbox", { name: "Prompt" }).press("Enter");
        await page.getByRole("button", { name: "Allow", exact: true }).waitFor();
      });
    }, server.url);
  },
);
