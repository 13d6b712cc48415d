import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { fakeCoordinator } from "../support/coordinator.ts";
import { mount } from "../../modules/hooks-redaction/mod.ts";

async function mounted(config: Record<string, unknown> = {}) {
  const fake = fakeCoordinator();
  await mount(fake.coordinator, config);
  const text = async (output: unknown) => {
    const emission = await fake.emit("tool:post", { tool_name: "read", result: { success: true, output } });
    return (emission.data.result as { output: unknown }).output;
  };
  return { ...fake, text };
}

const SECRETS: readonly (readonly [text: string, kind: string])[] = [
  [`AKIA${"ABCDEFGH".repeat(2)}`, "key"],
  [`AIza${"x".repeat(35)}`, "key"],
  [`sk-ant-api03-${"a1".repeat(20)}`, "key"],
  [`sk_live_${"a1".repeat(12)}`, "key"],
  [`ghp_${"a".repeat(36)}`, "token"],
  [`xoxb-${"1".repeat(12)}-abc`, "token"],
  [`eyJ${"a".repeat(20)}.eyJ${"b".repeat(20)}.${"c".repeat(20)}`, "token"],
  [`-----BEGIN RSA PRIVATE KEY-----\n${"QUJD\n".repeat(20)}-----END RSA PRIVATE KEY-----`, "private key"],
];

Deno.test("hooks-redaction replaces keys, tokens and private keys in results, and keeps the text around", async () => {
  const { text } = await mounted();
  for (const [secret, kind] of SECRETS) {
    assertEquals(await text(`before ${secret} after`), `before [REDACTED ${kind}] after`);
  }
  assertEquals(await text("postgres://app:hunter2@db/x"), "postgres://app:[REDACTED password]@db/x");
});

Deno.test("hooks-redaction searches lists and objects, and leaves the named fields", async () => {
  const { text } = await mounted({ allowlist: ["public"] });
  const [[secret]] = SECRETS as [[string, string]];
  assertEquals(
    await text({ public: secret, lines: [secret, 5, null] }),
    { public: secret, lines: ["[REDACTED key]", 5, null] },
  );
});

Deno.test("hooks-redaction changes the prompt before other hooks, and reports what it did without the secret", async () => {
  const { emit, emitted, handlers } = await mounted();
  const [[secret]] = SECRETS as [[string, string]];
  const emission = await emit("prompt:submit", { prompt: `Use ${secret}` });
  assertEquals(emission.data.prompt, "Use [REDACTED key]");
  assertEquals(emitted("hooks-redaction:redacted"), [{ where: "prompt", count: 1, kinds: ["key"] }]);
  assert(handlers.every(({ priority, fail_closed }) => priority === -1_000 && fail_closed));
});

Deno.test("hooks-redaction changes nothing in code, hashes, UUIDs, and ordinary sentences", async () => {
  const { text, emitted } = await mounted({ rules: ["secrets", "pii-basic"] });
  for (
    const plain of [
      "task-runner desk-lamp risk-free-operation-of-the-machine-room",
      "const token = await read(); // eyJ is how tokens begin",
      "0123456789abcdef0123456789abcdef01234567",
      "550e8400-e29b-41d4-a716-446655440000",
      "1234 5678 9012 3456", // the check digit does not fit
      "https://example.com:8080/a@b",
    ]
  ) assertEquals(await text(plain), plain);
  assertEquals(emitted("hooks-redaction:redacted"), []);
});

Deno.test("hooks-redaction replaces addresses, phone and card numbers with pii-basic only", async () => {
  const written = "ada@example.com, +44 20 7946 0958, 4111 1111 1111 1111";
  assertEquals(await (await mounted()).text(written), written);
  assertEquals(
    await (await mounted({ rules: ["pii-basic"] })).text(written),
    "[REDACTED e-mail], [REDACTED phone], [REDACTED card]",
  );
});

Deno.test("hooks-redaction applies own patterns, and refuses one that RE2 does not know", async () => {
  const { text } = await mounted({ patterns: ["EMP-\\d{4}"] });
  assertEquals(await text("EMP-1234 and EMP-12"), "[REDACTED] and EMP-12");
  const error = await assertRejects(() => mount(fakeCoordinator().coordinator, { patterns: ["(a"] }));
  assertMatch(error.message, /patterns: "\(a" is not a valid RE2 pattern/);
});

Deno.test("hooks-redaction shows nothing of what a tool writes while it runs", async () => {
  const { emit } = await mounted();
  const { data } = await emit("tool:output", { tool_call_id: "c", text: "sk-ant-api03-", stream: "stdout" });
  assertEquals(data.text, "");
});

Deno.test("hooks-redaction searches a hostile text of 200 KB in bounded time", async () => {
  const { text } = await mounted({ rules: ["secrets", "pii-basic"], patterns: ["(a+)+$"] });
  for (
    const part of [
      "sk-",
      "eyJaaaaaaaa.",
      "1 ",
      "a.",
      "a:",
      "http://a:",
      "-----BEGIN PRIVATE KEY-----",
      "x@",
      "a-",
    ]
  ) {
    const took_ms = await processorTime(() => text(part.repeat(Math.ceil(200_000 / part.length))));
    assert(took_ms < 2_000, `${part}: ${took_ms} ms`);
  }
});
