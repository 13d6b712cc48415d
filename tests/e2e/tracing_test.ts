import { assert, assertEquals } from "../assert.ts";
import { type OtlpReceiver, type ReceivedSpan, receiveSpans, treeOf } from "../support/otlp_receiver.ts";
import { configOn, fakeVendor, VENDORS } from "../modules/providers/fake_vendor.ts";
import { runProgram, startServer } from "./program.ts";

/** A program that was not compiled with `OTEL_DENO=true` sends no spans; src/docs/operating.md#tracing. */
const ignore = Deno.env.has("PROGRAM_UNDER_TEST") && Deno.env.get("OTEL_DENO") !== "true";

const CALCULATE = { name: "calculator", arguments: { expression: "6*7" } };
const SECRET_WORD = "halibut";

function mock(...responses: unknown[]): { providers: unknown[] } {
  return { providers: [{ module: "provider-mock", config: { responses } }] };
}

const SESSION = { orchestrator: "loop-streaming", context: "context-simple" };
const USAGE = {
  input_tokens: 100,
  output_tokens: 20,
  total_tokens: 127,
  cache_read_tokens: 60,
  cache_write_tokens: 7,
  cost_usd: "0.25",
};
const TASK = { name: "task", arguments: { agent: "clerk", instruction: `Add for ${SECRET_WORD}` } };
const PLAN = {
  session: SESSION,
  ...mock({ tool_calls: [CALCULATE, TASK], usage: USAGE }, `42 ${SECRET_WORD}`),
  tools: ["tool-task", "tool-calculator"],
  agents: { clerk: { ...mock({ tool_calls: [CALCULATE] }, "42"), description: "Adds", agents: "none" } },
};
/** A provider that is not called: its key is a secret of the run. */
const KEYED = { module: "provider-openai", config: { api_key: "${TRACED_KEY}" } };
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

function named(receiver: OtlpReceiver, name: string): ReceivedSpan[] {
  return receiver.spans.filter((span) => span.name === name);
}

Deno.test({
  name: "a run with two tools and a sub-agent is a tree of spans below the request, without content",
  ignore,
  async fn() {
    await using receiver = receiveSpans();
    let run;
    {
      await using server = await startServer([], { env: receiver.env });
      const traceparent = `00-${TRACE}-${PARENT}-01`;
      run = (await server.post("/v1/runs", { prompt: SECRET_WORD, plan: PLAN }, { traceparent })).body;
      assertEquals(run.status, "completed");
      await server.get(`/v1/runs/${run.id}`);
    }
    const [request] = named(receiver, "POST /v1/runs");
    assert(request);
    assertEquals(request.parentSpanId, PARENT);
    assertEquals(treeOf(receiver.spans, request), {
      "POST /v1/runs": [{
        "invoke_agent": [
          "chat",
          "execute_tool calculator",
          { "execute_tool task": [{ "invoke_agent clerk": ["chat", "execute_tool calculator", "chat"] }] },
          "chat",
        ],
      }],
    });
    const ours = receiver.spans.filter(({ traceId, name }) => traceId === TRACE && !name.startsWith("POST"));
    assertEquals(ours.length, 9);
    assertEquals(ours.map(({ status }) => status), ours.map(() => 0));
    assert(!JSON.stringify(receiver.spans).includes(SECRET_WORD));

    const [agent] = named(receiver, "invoke_agent");
    assertEquals(agent?.attributes, {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": run.session_id,
      "preamp.run.id": run.id,
      "preamp.run.status": "completed",
      "preamp.run.stop_reason": "end_turn",
      "gen_ai.usage.input_tokens": run.usage.input_tokens,
      "gen_ai.usage.output_tokens": run.usage.output_tokens,
      "gen_ai.usage.cache_read.input_tokens": 60,
      "gen_ai.usage.cache_creation.input_tokens": 7,
      "preamp.cost_usd": 0.25,
    });
    const [chat] = named(receiver, "chat").filter(({ parentSpanId }) => parentSpanId === agent?.spanId);
    assertEquals([chat?.kind, chat?.attributes], [3, {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "mock",
      "gen_ai.conversation.id": run.session_id,
      "gen_ai.usage.input_tokens": 107,
      "gen_ai.usage.output_tokens": 20,
      "gen_ai.usage.cache_read.input_tokens": 60,
      "gen_ai.usage.cache_creation.input_tokens": 7,
      "gen_ai.response.finish_reasons": ["tool_calls"],
      "preamp.cost_usd": 0.25,
    }]);
    const [tool] = named(receiver, "execute_tool calculator");
    assertEquals(tool?.attributes, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "calculator",
      "gen_ai.tool.call.id": "call_1",
      "gen_ai.conversation.id": run.session_id,
    });
    assertEquals(named(receiver, "GET /v1/runs/{id}").length, 1);
  },
});

Deno.test({
  name:
    "the request that answers an approval is linked to the run's span; refused calls and failures are errors",
  ignore,
  async fn() {
    await using receiver = receiveSpans();
    {
      await using server = await startServer([], { env: receiver.env });
      const plan = {
        session: SESSION,
        ...mock({ tool_calls: [CALCULATE] }, {
          error: { type: "AuthenticationError", message: SECRET_WORD },
        }),
        tools: ["tool-calculator"],
        hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
      };
      const { body: run } = await server.post("/v1/runs", { prompt: "go", plan });
      const { body: approvals } = await server.get(`/v1/runs/${run.id}/approvals`);
      await server.post(`/v1/runs/${run.id}/approvals/${approvals.data[0].id}`, { decision: "deny" });
      await (await server.fetch(`/v1/runs/${run.id}/events`, { headers: { accept: "application/x-ndjson" } }))
        .text();
    }
    const [agent] = named(receiver, "invoke_agent");
    const [decision] = named(receiver, "POST /v1/runs/{id}/approvals/{approval_id}");
    assert(agent && decision);
    assertEquals(decision.links, [{ traceId: agent.traceId, spanId: agent.spanId }]);
    const errors = receiver.spans.filter(({ status }) => status === 2);
    assertEquals(errors.map(({ name, attributes, events }) => [name, attributes["error.type"], events]), [
      ["execute_tool calculator", "denied", ["approval:required"]],
      ["chat", "AuthenticationError", []],
      ["invoke_agent", "provider_auth", []],
    ]);
  },
});

Deno.test({
  name: "the span of a run that another server continues is linked to the first server's",
  ignore,
  async fn() {
    await using receiver = receiveSpans();
    const folder = await Deno.makeTempDir();
    const flags = ["--store", `sqlite:${folder}/runs.db`];
    const options = { env: { ...receiver.env, PREAMP_API_KEYS: "traced-key-0123456789" } };
    const headers = { authorization: "Bearer traced-key-0123456789", "content-type": "application/json" };
    const plan = {
      session: SESSION,
      ...mock({ tool_calls: [CALCULATE] }, "done"),
      tools: ["tool-calculator"],
      hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
    };
    let run;
    {
      const first = await startServer(flags, options);
      const body = JSON.stringify({ prompt: "go", plan });
      run = await (await fetch(`${first.url}/v1/runs`, { method: "POST", headers, body })).json();
      assertEquals(run.status, "awaiting_approval");
      first.kill("SIGKILL");
      await first.ended;
    }
    let traceparent = "";
    {
      await using second = await startServer(flags, options);
      const runs = `${second.url}/v1/runs/${run.id}`;
      const decision = { method: "POST", headers, body: JSON.stringify({ decision: "allow" }) };
      const decided = await fetch(`${runs}/approvals/${run.approvals[0].id}`, decision);
      assertEquals(decided.status, 200, await decided.text());
      const events = await fetch(`${runs}/events`, {
        headers: { ...headers, accept: "application/x-ndjson" },
      });
      const entries = (await events.text()).trim().split("\n").map((line) => JSON.parse(line));
      assertEquals(entries.at(-1).data.run.status, "completed");
      traceparent = entries[0].data.traceparent;
    }
    await Deno.remove(folder, { recursive: true });
    const agent = named(receiver, "invoke_agent").find(({ links }) => links.length > 0);
    const [, traceId, spanId] = traceparent.split("-");
    assertEquals(agent?.links, [{ traceId, spanId }]);
    assertEquals(agent?.attributes["preamp.run.id"], run.id);
    assert(agent?.traceId !== traceId);
  },
});

Deno.test({
  name:
    "preamp run sends its spans; with tracing.content they have prompts, answers and tools, without secrets",
  ignore,
  async fn() {
    await using receiver = receiveSpans();
    const folder = await Deno.makeTempDir();
    const plan = `${folder}/plan.json`;
    await Deno.writeTextFile(plan, JSON.stringify({ ...PLAN, providers: [...PLAN.providers, KEYED] }));
    const env = { ...receiver.env, PREAMP_TRACING_CONTENT: "true", TRACED_KEY: "sk-test-abcdefghijklmnop" };
    const ended = await runProgram(["run", "-p", plan, `${SECRET_WORD} sk-test-abcdefghijklmnop`], { env });
    await Deno.remove(folder, { recursive: true });
    assertEquals(ended.code, 0, ended.stderr);
    const [agent] = named(receiver, "invoke_agent");
    const [tool] = named(receiver, "execute_tool calculator");
    assert(agent && tool);
    assertEquals(tool.attributes["gen_ai.tool.call.arguments"], '{"expression":"6*7"}');
    assertEquals(tool.attributes["gen_ai.tool.call.result"], '{"success":true,"output":"42","error":null}');
    const input = String(agent.attributes["gen_ai.input.messages"]);
    assert(input.includes(SECRET_WORD), input);
    const last = named(receiver, "chat").at(-1)?.attributes["gen_ai.output.messages"];
    assertEquals(
      last,
      JSON.stringify([{
        role: "assistant",
        parts: [{ type: "text", content: `42 ${SECRET_WORD}` }],
        finish_reason: "stop",
      }]),
    );
    assert(!JSON.stringify(receiver.spans).includes("abcdefghijklmnop"), input);
  },
});

for (const [module, vendor] of Object.entries(VENDORS)) {
  Deno.test({
    name: `${module}: requests to the vendor continue the trace, and the span has the model`,
    ignore,
    async fn() {
      await using receiver = receiveSpans();
      await using server = fakeVendor(vendor, [{ text: ["hello"] }]);
      const folder = await Deno.makeTempDir();
      const plan = { session: SESSION, providers: [{ module, config: configOn(server.url, vendor) }] };
      await Deno.writeTextFile(`${folder}/traced.yaml`, JSON.stringify(plan));
      {
        await using preamp = await startServer(["--plans", folder], { env: receiver.env });
        const headers = { traceparent: `00-${TRACE}-${PARENT}-01` };
        const request = { prompt: "go", plan_ref: "traced" };
        const { body } = await preamp.post("/v1/runs", request, headers);
        assertEquals(body.status, "completed", JSON.stringify(body));
      }
      await Deno.remove(folder, { recursive: true });
      const sent = server.requests.map(({ headers }) => headers.get("traceparent")?.split("-")[1]);
      assertEquals(sent, server.requests.map(() => TRACE));
      const [chat] = receiver.spans.filter(({ name }) => name.startsWith("chat "));
      assert(chat);
      assertEquals(chat.name, `chat ${chat.attributes["gen_ai.request.model"]}`);
    },
  });
}
