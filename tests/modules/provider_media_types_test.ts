/** Answers with the media type of something else, and pages of HTML instead of answers: proxies send both. */
import type { LLMError } from "preamp";
import { textOf } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { CHAT } from "./provider_openai/vendors.ts";
import type { Vendor } from "./providers/faults.ts";
import { configOn, VENDORS } from "./providers/fake_vendor.ts";
import { rawServer, type Reply } from "./providers/raw_server.ts";

const ANSWER = { text: ["Grüße ", "an die 世界"] };
const TYPES = [
  "text/html; charset=utf-8",
  "application/octet-stream",
  "text/plain",
  "application/json",
  "text/event-stream",
  undefined,
];

async function complete(vendor: Vendor, reply: Reply, stream: boolean, max_retries = 1) {
  await using server = rawServer([reply]);
  const coordinator = new TestCoordinator();
  await vendor.module.mount(coordinator, { ...configOn(server.url, vendor), max_retries });
  const provider = coordinator.providers[vendor.name]!; // mounted above
  const options = stream ? { onDelta() {} } : {};
  const answer = await provider.complete({ messages: [{ role: "user", content: "Hi" }] }, options)
    .then(({ content }) => textOf(content), (error: LLMError) => error);
  return { answer, requests: server.requests.length };
}

for (const vendor of [...Object.values(VENDORS), CHAT]) {
  for (const stream of [true, false]) {
    const name = `${vendor.api ?? vendor.name}, ${stream ? "streamed" : "whole"}`;
    const replyOf = (type: string | undefined, body: readonly string[]): Reply => ({
      status: 200,
      headers: type === undefined ? {} : { "content-type": type },
      body,
    });
    Deno.test(`${name}: an answer is read whatever its media type says`, async () => {
      const body = stream ? vendor.events(ANSWER) : [JSON.stringify(vendor.whole(ANSWER))];
      for (const type of TYPES) {
        const { answer } = await complete(vendor, replyOf(type, body), stream);
        assertEquals([type, answer], [type, "Grüße an die 世界"]);
      }
    });
    Deno.test(`${name}: an error in an answer with status 200 may be a text alone`, async () => {
      const reply = replyOf("application/json", ['{"error":"It broke"}']);
      const { answer } = await complete(vendor, reply, stream, 0);
      const { type, message } = answer as LLMError;
      assertEquals([type, message], ["ProviderUnavailableError", "It broke"]);
    });
    Deno.test(`${name}: a page of HTML is an error at once, which names the address`, async () => {
      for (const type of [...TYPES, vendor.stream_type]) {
        const { answer, requests } = await complete(
          vendor,
          replyOf(type, ["\ufeff\n", "<", "p>Sign in"]),
          stream,
        );
        const { type: error, message } = answer as LLMError;
        const text = message.replace(/127\.0\.0\.1:\d+/, "HOST");
        assertEquals(
          [type, requests, error, text.replace(/(?<=HOST)\/[^ ]+/, "/PATH")],
          [
            type,
            1,
            "InvalidRequestError",
            "Cannot read the answer: http://HOST/PATH answers with a page of HTML; check base_url",
          ],
        );
      }
    });
  }
}
