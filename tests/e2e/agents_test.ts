/**
 * Sub-agents through the real program: over HTTP with an approval answered from elsewhere, and on the command
 * line.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { runProgram, startServer } from "./program.ts";
import { readSse } from "../support/sse.ts";

const script = (...responses: unknown[]) => ({ module: "provider-mock", config: { responses } });

const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [
    script(
      { tool_calls: [{ name: "task", arguments: { agent: "accountant", instruction: "What is 6 × 7?" } }] },
      "42, says the accountant.",
    ),
  ],
  tools: ["tool-task", "tool-calculator"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
  agents: {
    accountant: {
      description: "Does sums",
      providers: [
        script({ tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] }, "It is 42."),
      ],
      agents: "none",
    },
  },
};

interface WireEntry {
  seq: number;
  event: string;
  session_id: string;
  parent_id?: string;
  data: Record<string, unknown>;
}

Deno.test("a sub-agent runs inside its parent's stream, its approval is answered over HTTP, its session can be read", async () => {
  await using program = await startServer([]);
  const response = await program.fetch("/v1/runs", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ prompt: "What is 6 × 7?", plan: PLAN }),
  });
  assertEquals(response.status, 200);
  const run_id = response.headers.get("preamp-run-id")!;
  const entries: WireEntry[] = [];
  for await (const frame of readSse(response)) {
    const entry: WireEntry = JSON.parse(frame.data);
    entries.push(entry);
    if (entry.event !== "run:status" || entry.data.status !== "awaiting_approval") continue;
    const { body } = await program.get(`/v1/runs/${run_id}/approvals`) as {
      body: { data: Record<string, string>[] };
    };
    const [approval] = body.data;
    assertEquals(approval?.tool_name, "calculator");
    assertEquals(
      approval?.session_id,
      entries.findLast((one) => one.event === "approval:required")?.session_id,
    );
    const decided = await program.post(`/v1/runs/${run_id}/approvals/${approval?.id}`, { decision: "allow" });
    assertEquals(decided.status, 200);
  }
  const { run } = entries.at(-1)!.data as { run: Record<string, unknown> };
  assertEquals([run.status, run.output_text, run.turn_count], ["completed", "42, says the accountant.", 4]);
  const spawned = entries.find(({ event }) => event === "task:agent_spawned")!;
  const child = String(spawned.data.sub_session_id);
  const inner = entries.filter(({ session_id }) => session_id === child);
  assert(inner.length > 20 && inner.every(({ parent_id }) => parent_id === run.session_id));
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
  const { body: session } = await program.get(`/v1/sessions/${child}`);
  assertEquals((session as { parent_id: unknown }).parent_id, run.session_id);
  const { body: page } = await program.get(`/v1/sessions/${child}/messages`);
  assertEquals((page as unknown as { data: { role: string }[] }).data.map(({ role }) => role), [
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
});

Deno.test("preamp plan check reports invalid agents with line and column", async () => {
  const plan = `session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
agents:
  reader:
    tools: [{module: tool-todo, permissions: {read: [/etc]}}]
`;
  const { code, stdout } = await runProgram(["plan", "check", "-"], { stdin: plan });
  assertEquals(code, 4);
  assertMatch(
    stdout,
    /<stdin>:5:\d+ {2}agents\.reader\.tools\[0\]\.permissions\.read {2}Cannot grant read "\/etc"/,
  );
});

Deno.test("preamp run shows what agents do, in from what their parent does", async () => {
  const { code, stdout, stderr } = await runProgram([
    "run",
    "-p",
    "plans/agents.yaml",
    "How much is the party?",
  ]);
  assertEquals([code, stdout], [0, "Twelve guests at 7.50 are 90, and three things are left to do.\n"]);
  assertMatch(stderr, /^agent accountant$/m);
  assertMatch(stderr, /^ {2}called calculator \{"expression":"12 \* 7\.5"\} = 90 \(\d+ ms\)$/m);
  assertMatch(stderr, /^called task \{"agent":"accountant".*\(\d+ ms\)$/m);
  assertMatch(stderr, /^completed: 6 model calls, 4 tool calls, /m);
});
