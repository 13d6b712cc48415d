/** Signatures of thoughts that the Gemini API refuses to take back, such as those of another model. */
import type { ContentBlock, JsonObject, Message } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { errorBody, event, response } from "./providers/gemini_wire.ts";
import { mount } from "../../modules/provider-gemini/mod.ts";

const USER: Message = { role: "user", content: "Hello" };

function signaturesOf({ contents }: JsonObject): unknown[] {
  return (contents as { parts: JsonObject[] }[]).flatMap(({ parts }) =>
    parts.flatMap(({ thoughtSignature }) => thoughtSignature ?? [])
  );
}

for (const stream of [true, false]) {
  Deno.test(`complete() leaves out signatures that the API refuses, then and later (stream: ${stream})`, async () => {
    await using server = fakeServer(({ body }) => {
      if (signaturesOf(body).includes("b2xk")) {
        return Response.json(errorBody(400, "INVALID_ARGUMENT", "Corrupted thought signature."), {
          status: 400,
        });
      }
      const answer = response([{ text: "Hi.", thoughtSignature: "bmV3" }], "STOP");
      return stream
        ? new Response(event(answer), { headers: { "content-type": "text/event-stream" } })
        : Response.json(answer);
    });
    const coordinator = new TestCoordinator();
    await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
    const provider = coordinator.providers.gemini!;
    const own = (block: JsonObject) =>
      ({ ...block, provider: `gemini@${new URL(server.url).host}` }) as unknown as ContentBlock;
    const call = { type: "tool_call", id: "a", name: "lookup", input: {}, thought_signature: "b2xk" };
    const history: Message[] = [
      USER,
      {
        role: "assistant",
        content: [own({ type: "thinking", thinking: "", signature: "b2xkZXI=" }), own(call)],
      },
      { role: "tool", tool_call_id: "a", content: "found" },
    ];
    const ask = async (model: string) =>
      await provider.complete({ messages: history, model }, stream ? { onDelta() {} } : {});
    const { content } = await ask("gemini-3.8-flash");
    history.push({ role: "assistant", content }, USER);
    await ask("gemini-3.8-flash");
    await ask("gemini-2.5-flash");
    const unchecked = "skip_thought_signature_validator";
    assertEquals(server.requests.map(({ body }) => signaturesOf(body)), [
      ["b2xkZXI=", "b2xk"],
      [unchecked],
      [unchecked, "bmV3"],
      ["bmV3"],
    ]);
    const retries = coordinator.hooks.getEvents("provider:retry").map((
      [, { delay, error_message }],
    ) => [delay, error_message]);
    assertEquals(retries, [[0, "Corrupted thought signature."]]);
  });
}

Deno.test("calls at the same time are each sent again without the signature that was refused", async () => {
  const { promise: both, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  await using server = fakeServer(async ({ body }) => {
    if (!signaturesOf(body).includes("b2xk")) return Response.json(response([{ text: "Hi." }], "STOP"));
    if (++arrived === 2) resolve();
    await both;
    const message = "Unable to submit request because Thought signature is not valid.."; // of Vertex AI
    return Response.json(errorBody(400, "INVALID_ARGUMENT", message), { status: 400 });
  });
  const coordinator = new TestCoordinator();
  await mount(coordinator, { api_key: "k", base_url: server.url, max_retries: 0 });
  const block = { type: "text", text: "Yes?", thought_signature: "b2xk" };
  const messages: Message[] = [
    USER,
    { role: "assistant", content: [{ ...block, provider: `gemini@${new URL(server.url).host}` }] },
    USER,
  ];
  const provider = coordinator.providers.gemini!;
  await Promise.all([provider.complete({ messages }), provider.complete({ messages })]);
  assertEquals(server.requests.map(({ body }) => signaturesOf(body)), [["b2xk"], ["b2xk"], [], []]);
});
