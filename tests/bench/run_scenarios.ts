/**
 * The scenarios of `run_bench.ts` and of the comparison with other libraries (`peers/`): runs whose model and
 * tool do nothing, with an argument of 200 bytes and a result of 1 KB for each call; and the bare loop, which
 * is their floor.
 */
import type { Message, ToolResult } from "../../src/sdk/types.ts";
import { noop, type Script, scriptedProvider } from "./modules/scripted.ts";

/** One kind of run. */
export interface Scenario {
  readonly script: Script;
  /** What a figure is for; `units` of them are in one run. */
  readonly unit: string;
  readonly units: number;
  /** Runs in one measurement; the bare loop is repeated {@link FLOOR_TIMES} times as often. */
  readonly runs: number;
  readonly target_us: number;
}

/** The scenarios by name. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  completion: { script: {}, unit: "a run of one completion", units: 1, runs: 300, target_us: 30 },
  turns_50: { script: { turns: 50 }, unit: "a tool turn of 50", units: 50, runs: 20, target_us: 16 },
  turns_1000: {
    script: { turns: 1_000 },
    unit: "a tool turn of 1,000",
    units: 1_000,
    runs: 1,
    target_us: 16,
  },
  parallel: { script: { turns: 10, calls: 8 }, unit: "a parallel call", units: 80, runs: 15, target_us: 12 },
  deltas: { script: { deltas: 1_000 }, unit: "a delta", units: 1_000, runs: 15, target_us: 0.4 },
};

/** Factor by which the faster bare loop is repeated. */
export const FLOOR_TIMES = 20;
/** The prompt of every run. */
export const PROMPT = "Work it out.";

/** Runs a script in a loop that does nothing else. Resolves to the text of the answer. */
export async function runBare(script: Script): Promise<string> {
  const provider = scriptedProvider(script);
  const messages: Message[] = [{ role: "user", content: PROMPT }];
  let deltas = 0;
  for (;;) {
    const response = await provider.complete({ messages }, { onDelta: () => void deltas++ });
    const calls = response.tool_calls ?? [];
    messages.push({ role: "assistant", content: response.content });
    if (calls.length === 0) return String(response.content[0]?.text ?? "");
    const results = await Promise.all(calls.map((call) => noop.execute(call.arguments)));
    for (const [index, result] of results.entries()) {
      const { id, name } = calls[index]!; // one result for each call
      messages.push({
        role: "tool",
        tool_call_id: id,
        name,
        content: (result as ToolResult).output as string,
      });
    }
  }
}

/** Runs a function `times` times in sequence. */
export async function repeat(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < times; time++) await run();
}
