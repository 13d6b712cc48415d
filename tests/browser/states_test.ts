/** Every state of a run: what the page says, and what axe-core says about it. */
import type { Json } from "../e2e/program.ts";
import { browserTest } from "./browser.ts";
import { runWith, SAY, saying, scripted, startPageServer, startRun } from "./runs.ts";

const LONG_MS = 600_000;
const TOOLS = { tools: ["tool-todo"] };
const LIST: Json = { tool_calls: [{ name: "todo", arguments: { action: "list" } }] };

/** State → its plan, the run's status, and texts that the page has. */
const STATES: Record<string, { plan: Json; status: string; texts: readonly string[] }> = {
  running: {
    plan: scripted([{ text: "at last", delay_ms: LONG_MS }]),
    status: "running",
    texts: ["● running"],
  },
  limit: {
    plan: scripted([LIST, LIST, "Listed twice."], {
      ...TOOLS,
      limits: { max_tool_calls: 1, on_limit: "pause" },
    }),
    status: "awaiting_limit",
    texts: ["1 of 1 tool calls are used"],
  },
  failed: {
    plan: scripted([{
      error: { type: "AuthenticationError", message: "Your credit balance is too low", status_code: 403 },
    }]),
    status: "failed",
    texts: ["Your credit balance is too low"],
  },
  incomplete: {
    plan: scripted([LIST, LIST, "Listed twice."], { ...TOOLS, limits: { max_tool_calls: 1 } }),
    status: "incomplete",
    texts: ["limit:max_tool_calls"],
  },
  "text-arabic": {
    plan: scripted(["## مرحبا\n\nهذا **نص** عربي مع `code` و 42."]),
    status: "completed",
    texts: ["مرحبا"],
  },
  "text-japanese": {
    plan: scripted([
      "# 会議室\n\n- 木曜日は満室です\n- 金曜日に予約しました\n\n| 部屋 | 席 |\n|---|---|\n| 松 | 12 |",
    ]),
    status: "completed",
    texts: ["金曜日に予約しました"],
  },
  "result-1mb": {
    plan: scripted([SAY, "That was much."], {
      tools: [saying(`"A line of a long result.\\n".repeat(40000)`)],
    }),
    status: "completed",
    texts: ["That was much."],
  },
};

browserTest("every state of a run says what it is, and axe-core finds nothing", async (browser) => {
  const server = await browser.use(startPageServer());
  for (const [state, { plan, status, texts }] of Object.entries(STATES)) {
    const id = await startRun(server, plan);
    await runWith(server, id, status);
    await browser.run(async ({ page, step, look }, { state, url, texts }) => {
      await page.goto(url);
      for (const text of texts) {
        await step(state, () => page.getByText(text).first().waitFor());
      }
      for (const call of await page.getByRole("log").locator("summary").all()) await call.click();
      await look(state);
    }, { state, url: `${server.url}/#/runs/${id}`, texts });
    if (status === "running" || status === "awaiting_limit") {
      await server.post(`/v1/runs/${id}/cancel`, { mode: "immediate" });
      await runWith(server, id, "cancelled");
    }
  }
});
