import { assert, assertEquals, assertRejects } from "../assert.ts";
import {
  AnswerText,
  type ClientOptions,
  type Entry,
  PreampApiError,
  PreampClient,
  type Run,
} from "../../src/client/mod.ts";
import { createPreamp } from "../../src/server/mod.ts";

const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: {
      responses: [
        { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] },
        { text: "6 × 7 is 42." },
      ],
    },
  }],
  tools: ["tool-calculator"],
};
const ASKING = {
  ...PLAN,
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};
const REQUEST = { prompt: "What is 6 × 7?", plan: PLAN };

/** Creates a server and a client of it; `around` sees each request and may change its answer. */
function open(
  around: (request: Request, send: () => Promise<Response>) => Promise<Response> = (_, send) => send(),
  options: Partial<ClientOptions> = {},
) {
  const preamp = createPreamp({ authenticate: null });
  const client = new PreampClient({
    url: "http://localhost/",
    fetch: (url, init) => {
      const request = new Request(url as string, init);
      return around(request, async () => {
        const response = await preamp.fetch(request);
        // as the global fetch does: an abort breaks off the body
        const body = response.body?.pipeThrough(new TransformStream(), { signal: request.signal });
        return new Response(body, response);
      });
    },
    maxDelayMs: 1,
    ...options,
  });
  return { client, [Symbol.asyncDispose]: preamp.close };
}

async function all(entries: AsyncIterable<Entry>): Promise<Entry[]> {
  return await Array.fromAsync(entries);
}

/** Returns the problem that a request is answered with. */
async function problem(request: () => Promise<unknown>): Promise<PreampApiError> {
  const error = await assertRejects(request, PreampApiError);
  assert(error instanceof PreampApiError);
  return error;
}

/** Returns the response with its body broken off after some bytes. */
function brokenOff(response: Response, bytes: number): Response {
  let left = bytes;
  const body = response.body!.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left));
        left -= chunk.length;
        if (left <= 0) controller.error(new TypeError("connection reset"));
      },
    }),
  );
  return new Response(body, response);
}

Deno.test("run() returns the run that ended, and the run that waits for a person", async () => {
  await using server = open();
  const run = await server.client.run(REQUEST);
  assertEquals([run.status, run.output_text], ["completed", "6 × 7 is 42."]);
  const waiting = await server.client.run({ ...REQUEST, plan: ASKING });
  assertEquals([waiting.status, waiting.approvals.length], ["awaiting_approval", 1]);
  await server.client.answer(waiting.approvals[0]!, "allow");
  const last = (await all(server.client.stream(waiting.id))).at(-1)!;
  assertEquals([last.event, (last.data.run as Run).status], ["run:end", "completed"]);
});

Deno.test("stream() returns every entry once and in order when the connection breaks anywhere", async () => {
  for (const bytes of [0, 1, 500, 1777, 4096, 6000]) {
    const connections: boolean[] = [];
    let cuts = 0;
    await using server = open(async (request, send) => {
      const response = await send();
      const isStream = request.headers.get("accept") === "text/event-stream";
      return isStream && response.body !== null && cuts++ < 3 ? brokenOff(response, bytes) : response;
    }, { onConnection: (connected) => connections.push(connected) });
    const entries = await all(server.client.stream(REQUEST));
    assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
    assertEquals(entries.at(-1)?.event, "run:end");
    assertEquals(new Set(entries.map(({ run_id }) => run_id)).size, 1);
    assert(connections.includes(false) && connections.at(-1), `${bytes}: ${connections}`);
    assertEquals((await server.client.listRuns()).data.length, 1);
  }
});

Deno.test("stream() starts no second run when the answer to its request was lost", async () => {
  let lost = false;
  await using server = open(async (_, send) => {
    const response = await send();
    if (lost) return response;
    lost = true;
    await response.body?.cancel();
    return new Response(null, { status: 200, headers: { "content-type": "text/event-stream" } });
  });
  const entries = await all(server.client.stream(REQUEST));
  assertEquals(entries.at(-1)?.event, "run:end");
  assertEquals((await server.client.listRuns()).data.length, 1);
});

Deno.test("stream() continues over a server that answers 503 for a while", async () => {
  let requests = 0;
  await using server = open(async (_, send) => {
    requests++;
    if (requests === 1) return brokenOff(await send(), 600);
    return requests < 4 ? new Response(null, { status: 503 }) : await send();
  });
  assertEquals((await all(server.client.stream(REQUEST))).at(-1)?.event, "run:end");
});

Deno.test("stream() throws a refusal, an unreachable server and an abort", async () => {
  await using server = open();
  const refused = await problem(() => all(server.client.stream({ ...REQUEST, plan: { session: {} } })));
  assertEquals([refused.code, refused.status, refused.details.length > 0], ["plan_invalid", 400, true]);
  await using away = open(() => Promise.reject(new TypeError("connection refused")));
  await assertRejects(() => all(away.client.stream(REQUEST)), TypeError);
  await using asking = open();
  const controller = new AbortController();
  const reason = new Error("enough");
  await assertRejects(async () => {
    const options = { signal: controller.signal };
    for await (const { event } of asking.client.stream({ ...REQUEST, plan: ASKING }, options)) {
      if (event === "approval:required") controller.abort(reason);
    }
  }, Error);
});

Deno.test("the key is sent as a bearer token and is read for each request", async () => {
  const sent: (string | null)[] = [];
  let key = "first";
  await using server = open((request, send) => {
    sent.push(request.headers.get("authorization"));
    return send();
  }, { key: () => key });
  await server.client.listPlans();
  key = "second";
  await server.client.listPlans();
  assertEquals(sent, ["Bearer first", "Bearer second"]);
});

Deno.test("sessions and plans are read, forked, explained and deleted", async () => {
  await using server = open();
  const { client } = server;
  const run = await client.run(REQUEST);
  const fork = await client.forkSession(run.session_id);
  assert(fork.id !== run.session_id);
  assertEquals((await client.listMessages(run.session_id)).data.length > 2, true);
  assertEquals((await client.listRuns({ session_id: run.session_id, limit: 1 })).data[0]?.id, run.id);
  assertEquals((await client.plans("check", { plan: PLAN })).ok, true);
  assertEquals((await client.getRunPlan(run.id)).plan, PLAN);
  assertEquals((await client.getPlan("default")).name, "demo");
  assert(JSON.stringify(await client.plans("explain", { plan: PLAN })).includes("tool-calculator"));
  assertEquals((await client.listEvents(run.id, { limit: 2 })).data.length, 2);
  assertEquals(await client.replay(run.id), { equal: true });
  const again = await client.rerun(run.id, { from_event: (await client.listRequests(run.id)).data[1]!.seq });
  assertEquals([again.status, again.forked_from?.run_id], ["running", run.id]);
  assertEquals((await all(client.stream(again.id))).at(-1)?.event, "run:end");
  const { data: requests } = await client.listRequests(run.id);
  assertEquals(requests.map(({ messages, tools }) => [messages.length, tools.length]), [[1, 1], [3, 1]]);
  await client.deleteRun(run.id);
  const missing = await problem(() => client.getRun(run.id));
  assertEquals(missing.code, "not_found");
});

Deno.test("a problem that a slow server sends with status 200 is thrown", async () => {
  const body = { status: 502, error: { code: "module_fetch_failed", message: "no module" } };
  await using server = open(() => Promise.resolve(new Response(`   ${JSON.stringify(body)}`)));
  const error = await problem(() => server.client.run(REQUEST));
  assertEquals([error.code, error.status, error.message], ["module_fetch_failed", 502, "no module"]);
});

Deno.test("AnswerText is the answer of the run, without text of lost calls, other blocks and sub-agents", async () => {
  await using server = open();
  const answer = new AnswerText();
  for await (const entry of server.client.stream(REQUEST)) answer.add(entry);
  assertEquals(answer.text, "6 × 7 is 42.");

  const entry = (event: string, data: Entry["data"], more: Partial<Entry> = {}): Entry => ({
    ...{ seq: 1, ts: "", run_id: "run_1", session_id: "ses_1", event, data },
    ...more,
  });
  const start = (request_id: string, block_index = 0, block_type = "text") =>
    entry("content_block:start", { request_id, block_index, block_type });
  const delta = (request_id: string, delta: string, block_index = 0) =>
    entry("content_block:delta", { request_id, block_index, delta });
  for (const lost of ["content_block:void", "llm:stream_aborted"]) {
    const text = new AnswerText();
    const steps = [
      start("a"),
      delta("a", "Half"),
      entry(lost, { request_id: "other" }),
      entry(lost, { request_id: "a" }),
      delta("a", "late"), // of the call that was lost
      start("b", 0, "thinking"),
      delta("b", "hm", 0),
      start("b", 1),
      delta("b", "All", 1),
      { ...delta("b", "sub", 1), parent_id: "ses_0" },
      delta("b", " of it", 1),
    ].map((one) => text.add(one));
    assertEquals(steps, ["", "Half", "Half", "", "", "", "", "", "All", "All", "All of it"]);
  }
});
