/**
 * A run of 2,000 iterations against a model with a window of 32,000 tokens: kernel, loop, guards and context
 * for real. No request is larger than the window, by o200k's own count; none breaks a pair; each begins as
 * the one before; and the last hundred cost what the second hundred did.
 */
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { ChatRequest, Message, Provider } from "preamp";
import { assertToolPairs } from "preamp/testing";
import { mount } from "../../modules/context-simple/mod.ts";
import { kit, tool } from "../support/sessions.ts";
import { assert, assertEquals } from "../assert.ts";

const TURNS = 2000;
const WINDOW = 32_000;

const SCRIPTS = [
  (turn: number) =>
    `export function step${turn}(input: string): number {\n  return input.length * ${turn};\n}\n`,
  (turn: number) =>
    JSON.stringify({ turn, path: `/srv/app/${turn}.json`, ok: turn % 3 === 0, items: [turn, turn + 1] }),
  (turn: number) =>
    `2026-11-21T09:${turn % 60}:02Z ERROR worker-${turn} failed after ${turn * 7} ms, retrying\n`,
  (turn: number) => `第${turn}个文件已经检查过了，没有发现新的问题。`,
  (turn: number) => `The file number ${turn} was read and nothing in it needs to be changed for now. `,
];

/** Returns the tool's output: another kind of text each turn, sometimes very long. */
function resultOf(turn: number): string {
  const script = SCRIPTS[turn % SCRIPTS.length]!;
  return script(turn).repeat(turn % 97 === 0 ? 150 : 1 + turn % 12);
}

const counts = new WeakMap<Message, number>();

/** Tokens of a message as sent; counted once, the messages are the same objects from view to view. */
function tokensOf(message: Message): number {
  let tokens = counts.get(message);
  if (tokens === undefined) {
    const text = typeof message.content === "string" ? message.content : JSON.stringify(message.content);
    counts.set(message, tokens = 4 + countTokens(text));
  }
  return tokens;
}

Deno.test("a run of 2,000 iterations never exceeds a window of 32,000 tokens, never breaks a pair, and keeps its prefix", async () => {
  let [kept, last, largest]: [number, Message[], number] = [0, [], 0];
  let changes = 0;

  function look({ messages }: ChatRequest): number {
    const own = messages.filter((message) => message.metadata?.source !== "context-compaction");
    assertToolPairs(messages);
    const tokens = messages.reduce((sum, message) => sum + tokensOf(message), 0);
    largest = Math.max(largest, tokens);
    if (last.every((message, index) => message === own[index])) kept++;
    else changes++;
    last = own;
    return tokens;
  }

  let turn = 0;
  const provider: Provider = {
    name: "scripted",
    getInfo: () => ({
      id: "scripted",
      display_name: "Scripted",
      credential_env_vars: [],
      capabilities: [],
      config_fields: [],
      defaults: { context_window: WINDOW, max_output_tokens: 2000 },
    }),
    listModels: () => Promise.resolve([]),
    parseToolCalls: () => [],
    complete(request) {
      const input_tokens = look(request) + 40; // the tool's schema
      const usage = { input_tokens, output_tokens: 10, total_tokens: input_tokens + 10, cost_usd: null };
      if (++turn === TURNS) return Promise.resolve({ content: [{ type: "text", text: "done" }], usage });
      const tool_calls = [{ id: `call_${turn}`, name: "read", arguments: { turn } }];
      return Promise.resolve({ content: [], tool_calls, usage });
    },
  };
  const { session, of } = kit({
    context: { mount, id: "context-simple" },
    providers: [provider],
    tools: [tool("read", (input) => resultOf(Number(input.turn)))],
    loop: { max_iterations: TURNS + 1 },
    limits: { max_iterations: 10_000, max_tool_calls: 10_000, max_total_tokens: 1e9 },
  });
  const outcome = await session.execute("Check every file.");
  assertEquals([outcome.status, turn], ["completed", TURNS]);
  assert(largest <= WINDOW - 1000, `${largest} tokens`);
  const compactions = of("context:compaction").length;
  assert(compactions > 10, `${compactions} compactions: the window must be used up`);
  assertEquals(changes, compactions, "only a compaction changes the prefix");
  assert(kept / TURNS >= 0.95, `${kept} of ${TURNS} views begin with the one before`);
});
