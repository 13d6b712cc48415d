/** Servers that refuse calls of another provider, such as Mistral's and Moonshot's. */
import type { JsonObject, Message } from "preamp";
import { assertEquals } from "../../assert.ts";
import { mounted } from "./kit.ts";
import { completion, outputMessage, reasoning, response } from "./wire.ts";

const call = (id: string) => ({ type: "tool_call" as const, id, name: "lookup", input: {} });

const HISTORY: Message[] = [
  { role: "user", content: "Look" },
  { role: "assistant", content: [call("toolu_01A"), call("toolu_01B")] },
  { role: "tool", tool_call_id: "toolu_01B", content: "b" },
  { role: "tool", tool_call_id: "toolu_01A", content: "a" },
];

interface WireMessage {
  role: string;
  reasoning_content?: string;
  tool_call_id?: string;
  tool_calls?: { id: string }[];
}

Deno.test("calls of another provider get short ids when the server refuses theirs", async () => {
  const idsOf = ({ messages }: JsonObject) =>
    (messages as WireMessage[]).flatMap(({ tool_calls = [], tool_call_id = [] }) => [
      ...tool_calls.map(({ id }) => id),
      ...[tool_call_id].flat(),
    ]);
  await using local = await mounted(({ body }) => {
    const long = idsOf(body).find((id) => !/^[a-zA-Z0-9]{9}$/.test(id));
    if (long === undefined) return Response.json(completion({ content: "Hi" }));
    const message = `Tool call id was ${long} but must be a-z, A-Z, 0-9, with a length of 9.`;
    return Response.json({ object: "error", message, code: "3280" }, { status: 400 });
  });
  await local.ask(HISTORY);
  await local.ask(HISTORY);
  const short = ["call00001", "call00002", "call00001", "call00002"];
  assertEquals(local.requests.map(({ body }) => idsOf(body)), [
    ["toolu_01A", "toolu_01B", "toolu_01A", "toolu_01B"],
    short,
    short,
  ]);
  const [retry, ...others] = local.coordinator.hooks.getEvents("provider:retry").map(([, data]) => data);
  const { provider, attempt, max_retries, delay, error_type, error_message, status_code } = retry!;
  assertEquals([provider, attempt, max_retries, delay, status_code, others], ["openai", 1, 0, 0, 400, []]);
  assertEquals([error_type, error_message], [
    "InvalidRequestError",
    "Tool call id was toolu_01A but must be a-z, A-Z, 0-9, with a length of 9.",
  ]);
});

Deno.test("calls of another provider get blank reasoning when the server refuses them without it", async () => {
  const reasoningOf = ({ messages }: JsonObject) =>
    (messages as WireMessage[]).filter(({ role }) => role === "assistant")
      .map(({ reasoning_content }) => reasoning_content);
  for (
    const message of [
      "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
      "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ]
  ) {
    await using local = await mounted(({ body }) =>
      reasoningOf(body).some((text) => !text) // an empty text is a missing one
        ? Response.json({ error: { message, type: "invalid_request_error" } }, { status: 400 })
        : Response.json(completion({ content: "Hi" }))
    );
    await local.ask(HISTORY);
    await local.ask(HISTORY);
    assertEquals(local.requests.map(({ body }) => reasoningOf(body)), [[undefined], [" "], [" "]]);
  }
});

Deno.test("items of answers that the server does not take back are left out", async () => {
  const following = (id: string) =>
    `Item '${id}' of type 'reasoning' was provided without its required following item.`;
  for (
    const [item, status, text] of [
      [reasoning(["Hm"], "gAAA"), 400, following("rs_1")],
    ] as const
  ) {
    await using local = await mounted(({ body }, count) => {
      const known = (body.input as JsonObject[]).some(({ id }) => id !== undefined);
      if (known) return Response.json({ error: { message: text } }, { status });
      return Response.json(response(count === 0 ? [item, outputMessage("Hi")] : [outputMessage("Bye")]));
    }, { api: "responses", model: "gpt-5" });
    const { content } = await local.ask("Hi");
    const history: Message[] = [
      { role: "user", content: "Hi" },
      { role: "assistant", content },
      { role: "user", content: "Bye" },
    ];
    assertEquals((await local.ask(history)).content.map((block) => block.text), ["Bye"]);
    assertEquals(local.requests.map(({ body }) => (body.input as JsonObject[]).length), [1, 4, 3]);
  }
});

/** Resolves when `count` requests have arrived; then all of them are answered. */
function gate(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  return () => {
    if (--count === 0) resolve();
    return promise;
  };
}

Deno.test("a refusal of a request that was corrected already is an error", async () => {
  const refusal = (message: string) => () => Response.json({ error: { message } }, { status: 400 });
  for (
    const message of [
      "Tool call id was toolu_01A but must be a-z, A-Z, 0-9, with a length of 9.",
      "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ]
  ) {
    await using local = await mounted(refusal(message));
    const error = await local.ask(HISTORY).catch((error) => error);
    assertEquals([error.type, error.message, local.requests.length], ["InvalidRequestError", message, 2]);
    await local.ask(HISTORY).catch(() => {});
    assertEquals(local.requests.length, 3); // it was sent at once as the server had wanted it
    await using other = await mounted(refusal(message));
    await other.ask("Hi").catch(() => {});
    assertEquals(other.requests.length, 1); // nothing in it could be the reason
  }
});

Deno.test("calls at the same time are each sent again with what one of them has learnt", async () => {
  const both = gate(2);
  await using local = await mounted(async ({ body }, count) => {
    if (count < 2) await both();
    if (body.temperature === undefined) return Response.json(completion({ content: "Hi" }));
    const message = "Unsupported parameter: 'temperature' is not supported with this model.";
    return Response.json({ error: { message, param: "temperature" } }, { status: 400 });
  });
  const ask = () => local.ask("Hi", { model: "local", temperature: 0.5 });
  const answers = await Promise.all([ask(), ask()]);
  assertEquals(answers.map(({ degradation }) => degradation?.requested), [
    "temperature 0.5",
    "temperature 0.5",
  ]);
  assertEquals(local.requests.map(({ body }) => body.temperature), [0.5, 0.5, undefined, undefined]);
});
