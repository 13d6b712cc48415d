/** A server that accepts only ids of calls with nine letters and digits, such as Mistral's. */
import type { JsonObject, Message } from "preamp";
import { assertEquals } from "../../assert.ts";
import { mounted } from "./kit.ts";
import { completion } from "./wire.ts";

interface WireMessage {
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
  const call = (id: string) => ({ type: "tool_call" as const, id, name: "lookup", input: {} });
  const history: Message[] = [
    { role: "user", content: "Look" },
    { role: "assistant", content: [call("toolu_01A"), call("toolu_01B")] },
    { role: "tool", tool_call_id: "toolu_01B", content: "b" },
    { role: "tool", tool_call_id: "toolu_01A", content: "a" },
  ];
  await local.ask(history);
  await local.ask(history);
  const short = ["call00001", "call00002", "call00001", "call00002"];
  assertEquals(local.requests.map(({ body }) => idsOf(body)), [
    ["toolu_01A", "toolu_01B", "toolu_01A", "toolu_01B"],
    short,
    short,
  ]);
});
