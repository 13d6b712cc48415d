/**
 * The whole loop, as src/docs/quickstart.md shows it in "The whole loop in one run": one curl on
 * plans/everything.yaml, answered from another shell, then the replay of that very run.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { readPage } from "./page.ts";
import { ROOT, startServer } from "./program.ts";
import { shell, startShell } from "./shell.ts";

interface WireEntry {
  seq: number;
  event: string;
  run_id: string;
  session_id: string;
  parent_id?: string;
  data: Record<string, unknown>;
  verdict?: { action: string };
}

/**
 * The three blocks of commands in that section: the run, what is said from elsewhere, the replay.
 */
async function commands(url: string): Promise<[string, string, string]> {
  const blocks = (await readPage("src/docs/quickstart.md")).section("The whole loop in one run").blocks("sh");
  assertEquals(blocks.length, 3);
  return blocks.map((block) => block.replaceAll("http://127.0.0.1:8484", url)) as [string, string, string];
}

function entriesOf(stream: string): WireEntry[] {
  const whole = stream.slice(0, stream.lastIndexOf("\n\n") + 1);
  return whole.split("\n").filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice("data: ".length)));
}

Deno.test("src/docs/quickstart.md shows the whole loop: streaming, parallel tools, an approval, a steering message, a sub-agent, a limit, an equal replay", async () => {
  await using server = await startServer(["--plans", `${ROOT}plans/`]);
  const [run, answer, replay] = await commands(server.url);
  const env = { KEY: server.key };
  const streaming = await startShell(run, { env });
  // it waits for the person alone: the tool beside is done
  const first = entriesOf(
    await streaming.stdout.until((text) =>
      text.includes('{"status":"awaiting_approval"}') && text.includes("event: tool:post")
    ),
  );
  const asked = first.find(({ event }) => event === "approval:required");
  assert(asked, "the run waits for a person");
  const answered = await shell(answer, { env }); // takes the ids of the run and its approval itself
  assertMatch(answered, /"status":"granted"/);

  const entries = entriesOf(await streaming.ended);
  const own = entries.filter(({ parent_id }) => parent_id === undefined);
  const seqs = (wanted: (entry: WireEntry) => boolean) => entries.filter(wanted).map(({ seq }) => seq);
  const only = (wanted: (entry: WireEntry) => boolean): WireEntry => {
    const found = entries.filter(wanted);
    assertEquals(found.length, 1);
    return found[0]!;
  };
  assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));

  // streamed: the answer came in pieces that join to it
  const ended = own.at(-1)!.data.run as Record<string, unknown>;
  const request_id = own.findLast(({ event }) => event === "content_block:delta")!.data.request_id;
  const pieces = own.filter(({ event, data }) =>
    event === "content_block:delta" && data.request_id === request_id
  );
  assert(pieces.length > 2);
  assertEquals(pieces.map(({ data }) => data.delta).join(""), ended.output_text);

  // two tools at once: one group; the list was done before the person had answered
  const pair = own.filter(({ event }) => event === "tool:pre").slice(0, 2);
  assertEquals(pair.map(({ data }) => data.tool_name), ["calculator", "todo"]);
  assertEquals(pair[0]!.data.parallel_group_id, pair[1]!.data.parallel_group_id);
  const granted = only(({ event }) => event === "approval:granted");
  const done = own.filter(({ event }) => event === "tool:post");
  assertEquals(done.map(({ data }) => data.tool_name), ["todo", "calculator", "task"]);
  assert(done[0]!.seq < granted.seq && granted.seq < done[1]!.seq);
  assertEquals(granted.data.args_hash, asked.data.args_hash);

  // steered: what was said stands in front of the next request
  const steered = only(({ event }) => event === "orchestrator:steering_injected");
  assertEquals(steered.data.content, "Book the room for Friday");
  const requests = own.filter(({ event }) => event === "provider:request").map(({ seq }) => seq);
  assert(requests[0]! < steered.seq && steered.seq < requests[1]!);

  // a sub-agent, between the two events of its parent
  const spawned = only(({ event }) => event === "task:agent_spawned");
  const returned = only(({ event }) => event === "task:agent_completed");
  const child = seqs(({ session_id }) => session_id === spawned.data.sub_session_id);
  assert(child.length > 20 && child[0]! > spawned.seq && child.at(-1)! < returned.seq);
  assertEquals(returned.data.status, "completed");

  // a limit: the fifth call did not run, and no model was called after it
  const refused = only(({ event }) => event === "tool:error");
  assertEquals((refused.data.error as { type: string }).type, "limit_reached");
  assert(requests.at(-1)! < refused.seq);
  assertEquals([ended.status, ended.stop_reason, ended.tool_call_count], [
    "incomplete",
    "limit:max_tool_calls",
    4,
  ]);

  assertEquals(JSON.parse(await shell(replay, { env: { ...env, RUN: asked.run_id } })), { equal: true });
});
