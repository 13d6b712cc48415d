/** Runs whose model fails or breaks off within its answer: what the run reports, counts and replays. */
import type { JsonObject } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller } from "../../src/runs/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { CHAT } from "./provider_openai/vendors.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { configOn, VENDORS } from "./providers/fake_vendor.ts";

const CALLER: Caller = { name: "cli", namespace: "test", origin: "operator" };

/** Input tokens of the request, which these servers state at the beginning of their streams. */
const STATED: Readonly<Record<string, number>> = { anthropic: 10, gemini: 10 };

for (const vendor of [...Object.values(VENDORS), CHAT]) {
  Deno.test(`${vendor.api ?? vendor.name}: the tokens of an answer that breaks off count in the run`, async () => {
    const events = vendor.events({ text: ["Hello, ", "this is a text"] });
    const broken = events.slice(0, -vendor.end_events).join("");
    await using server = fakeServer(() =>
      new Response(broken, { headers: { "content-type": vendor.stream_type } })
    );
    const runtime = createRuntime({ env: () => undefined });
    try {
      const config = { ...configOn(server.url, vendor), prices: { input: "1", output: "1" } };
      const plan = {
        session: { orchestrator: "loop-streaming", context: "context-simple" },
        providers: [{ module: `provider-${vendor.name}`, config }],
      };
      const handle = await runtime.runs.create({ plan, prompt: "Say hello to the whole world." }, CALLER);
      const run = await handle.settled("end");
      const log = await runtime.runs.events(CALLER, run.id, { limit: 1000 });
      const dataOf = (name: string) => log.find(({ event }) => event === name)?.data ?? {};
      const usage = dataOf("provider:error").usage as JsonObject;
      const { input_tokens, output_tokens, total_tokens, cost_usd } = run.usage;
      assertEquals([run.status, run.turn_count, server.requests.length], ["failed", 0, 1]);
      assertEquals(
        [usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cost_usd],
        [input_tokens, output_tokens, total_tokens, cost_usd],
      );
      assertEquals(dataOf("llm:response").usage, usage);
      const stated = STATED[vendor.name];
      assert(stated === undefined ? input_tokens > 5 && input_tokens < 20 : input_tokens === stated);
      assert(output_tokens >= 4 && output_tokens < 10, `${output_tokens} output tokens`);
      assertEquals(Number(cost_usd), total_tokens / 1e6);
      assertEquals((await runtime.runs.replay(CALLER, run.id)).equal, true);
    } finally {
      await runtime.close();
    }
  });
}

for (const vendor of [...Object.values(VENDORS), CHAT]) {
  Deno.test(`${vendor.api ?? vendor.name}: an error that a server states as an event has the message in it`, async () => {
    const stated = JSON.stringify({ error: { message: "out of slots", type: "server_error" } });
    const bodies = [
      `data: ${stated}\n\n`,
      `event: error\r\ndata: ${stated}\r\n\r\n`,
      `: ping\n\nid: 1\nretry: 10\nevent: error\ndata: ${stated}\n\n`,
    ];
    for (const body of bodies) {
      for (const type of ["text/event-stream", "application/json"]) {
        const headers = { "content-type": type };
        await using server = fakeServer(() => new Response(body, { status: 500, headers }));
        const coordinator = new TestCoordinator();
        await vendor.module.mount(coordinator, { ...configOn(server.url, vendor), max_retries: 0 });
        const request = { messages: [{ role: "user" as const, content: "Hi" }] };
        const call = coordinator.providers[vendor.name]!.complete(request, { onDelta: () => {} });
        const { type: error_type, message, status_code } = await call.catch((error) => error);
        assertEquals([error_type, message, status_code], ["ProviderUnavailableError", "out of slots", 500]);
      }
    }
  });
}
