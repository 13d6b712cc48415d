import { assertEquals } from "../../assert.ts";
import { bodyOf, problemOf, testApp } from "../../support/http.ts";

Deno.test("a page of messages ends after the one with which it reaches 8 MiB", async () => {
  const { send, runtime } = testApp();
  const caller = { name: "key:k1", namespace: "k1", origin: "caller" as const };
  const prompt = "x".repeat(5 * 1024 * 1024); // too long for an answer
  const { session_id, ...first } = await (await runtime.runs.create({ prompt }, caller)).settled("end");
  assertEquals(first.error?.code, "context_overflow");
  for (let count = 0; count < 2; count++) {
    await (await runtime.runs.create({ prompt, session_id }, caller)).settled("end");
  }
  const page = async (query: string) => {
    const { data, next_cursor } = await bodyOf(
      await send(`GET /v1/sessions/${session_id}/messages${query}`),
      "MessageList",
    );
    return [data.length, next_cursor];
  };
  assertEquals(await page(""), [2, "2"]);
  assertEquals(await page("?cursor=2"), [1, null]);
});

Deno.test("sessions are listed, read, paged and deleted", async () => {
  const { send } = testApp();
  const first = await bodyOf(await send("POST /v1/runs", { body: { prompt: "answer 1" } }), "Run");
  const { session_id } = first;
  const second = await bodyOf(
    await send("POST /v1/runs", { body: { prompt: "answer 2", session_id } }),
    "Run",
  );
  assertEquals((await bodyOf(await send("GET /v1/sessions"), "SessionList")).data.length, 1);
  assertEquals((await bodyOf(await send(`GET /v1/sessions/${session_id}`), "Session")).run_count, 2);
  const runs = await bodyOf(await send(`GET /v1/sessions/${session_id}/runs?limit=1`), "RunList");
  assertEquals([runs.data.length, runs.data[0].id, typeof runs.next_cursor], [1, second.id, "string"]);
  assertEquals(await problemOf(await send("GET /v1/sessions/ses_x/runs")), "404 not_found");
  const all = await bodyOf(await send(`GET /v1/sessions/${session_id}/messages`), "MessageList");
  assertEquals([all.data.map(({ role }: { role: string }) => role), all.next_cursor], [
    ["user", "assistant", "user", "assistant"],
    null,
  ]);
  const page = await bodyOf(
    await send(`GET /v1/sessions/${session_id}/messages?limit=1&cursor=2`),
    "MessageList",
  );
  assertEquals([page.data, page.next_cursor], [all.data.slice(2, 3), "3"]);
  assertEquals((await send(`DELETE /v1/sessions/${session_id}`)).status, 204);
  assertEquals(await problemOf(await send(`GET /v1/sessions/${session_id}`)), "404 not_found");
});
