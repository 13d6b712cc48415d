/**
 * Deterministic transcripts like those of agents: a task, rounds of calls with results of all sizes, and some
 * user messages.
 */
import type { Message } from "../../src/sdk/types.ts";

/** Returns the system message and the first prompt. */
export function opening(): Message[] {
  return [
    {
      role: "system",
      content:
        "You are a careful engineer. Work step by step, read before you write, and keep answers short.",
    },
    { role: "user", content: "Find out why the nightly import drops records, and fix it. Tests must pass." },
  ];
}

/**
 * Returns the messages of round `round`: a call and its result, two calls every seventh round, a user message
 * every twentieth.
 */
export function roundOf(round: number): Message[] {
  const random = numbers(round);
  const messages: Message[] = [];
  if (round % 20 === 19) {
    messages.push(answer(`So far: ${prose(random, 60)}`), {
      role: "user",
      content: `And ${prose(random, 25)}?`,
    });
  }
  const ids = round % 7 === 6 ? [`call_${round}_a`, `call_${round}_b`] : [`call_${round}`];
  const calls = ids.map((id) => ({
    id,
    name: "read_file",
    arguments: { path: `src/import/step_${round}.ts` },
  }));
  messages.push({
    role: "assistant",
    content: [
      { type: "text", text: prose(random, 20) },
      ...calls.map(({ id, name, arguments: input }) => ({ type: "tool_call", id, name, input })),
    ],
    tool_calls: calls.map((call) => ({ ...call, tool: call.name })),
  });
  for (const id of ids) {
    messages.push({ role: "tool", tool_call_id: id, name: "read_file", content: output(random) });
  }
  return messages;
}

/** Returns a transcript of at least `count` messages. */
export function transcript(count: number): Message[] {
  const messages = opening();
  for (let round = 0; messages.length < count; round++) messages.push(...roundOf(round));
  return messages;
}

function answer(text: string): Message {
  return { role: "assistant", content: [{ type: "text", text }] };
}

/** Returns a tool result like a file, a log or a text; most are short, some are long. */
function output(random: () => number): string {
  const lines = random() < 0.85 ? 3 + Math.floor(random() * 25) : 80 + Math.floor(random() * 200);
  const kind = random();
  return Array.from({ length: lines }, (_, line) => {
    if (kind < 0.5) {
      return `  const ${word(random)} = await ${word(random)}(${word(random)}, { ${
        word(random)
      }: ${line} });`;
    }
    if (kind < 0.75) {
      return `2026-11-21T09:${10 + line % 50}:02Z INFO ${word(random)} ${word(random)} took ${line * 7} ms`;
    }
    return prose(random, 14);
  }).join("\n");
}

const WORDS =
  "record batch import table row column cursor offset retry queue worker reader writer parse check merge field value index error limit stream token chunk buffer header schema update insert select commit rollback lock wait time zone date number text empty missing double first last next page"
    .split(" ");

function word(random: () => number): string {
  return WORDS[Math.floor(random() * WORDS.length)] ?? "record";
}

function prose(random: () => number, count: number): string {
  return Array.from({ length: count }, () => word(random)).join(" ");
}

function numbers(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b9 >>> 0;
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) >>> 0;
    state = (state + 0x6d2b79f5) >>> 0;
    return (state ^ (state >>> 13)) / 2 ** 32 % 1;
  };
}
