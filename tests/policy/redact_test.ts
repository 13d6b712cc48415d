import fc from "fast-check";
import { Buffer } from "node:buffer";
import { assert, assertEquals, assertStrictEquals, assertStringIncludes } from "../assert.ts";
import { isSecretKey, REDACTED, Redactor } from "../../src/policy/redact.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { estimateJsonBytes, toFrozenObject } from "../../src/sdk/json.ts";
import { PNG } from "../support/images.ts";

const SECRET = "s3cr3t/Key+with=odd&chars";

Deno.test("isSecretKey() matches whole keys in any spelling", () => {
  const secret =
    "api_key apikey api-key API_KEY apiKey secret password Token credential credentials private_key privatekey auth " +
    "Authorization access_token accessToken client_secret X-Api-Key openai_api_key refresh-token";
  for (const key of secret.split(" ")) assert(isSecretKey(key), key);
});

Deno.test("isSecretKey() does not match counters and ordinary keys", () => {
  const plain =
    "total_tokens input_tokens max_tokens tokens token_count author authority passwords_checked secretary monkey " +
    "keyboard id constructor";
  for (const key of plain.split(" ")) assert(!isSecretKey(key), key);
});

Deno.test("redact() replaces values by key name at any depth, and keeps the shape", () => {
  const data = {
    a: [{ api_key: "short", n: 1 }],
    auth: { user: "x" },
    token: 5,
    total_tokens: 7,
    password: null,
    secret: "",
  };
  assertEquals(new Redactor().redact(data), {
    a: [{ api_key: REDACTED, n: 1 }],
    auth: REDACTED as unknown as { user: string },
    token: REDACTED as unknown as number,
    total_tokens: 7,
    password: null,
    secret: "",
  });
});

Deno.test("redact() returns the same object when there is no secret, and never changes its input", () => {
  const redactor = new Redactor([SECRET]);
  const clean = { a: [1, { b: "text" }] };
  assertStrictEquals(redactor.redact(clean), clean);
  const dirty = Object.freeze({ keep: clean, b: Object.freeze([`x ${SECRET}`]) });
  const redacted = redactor.redact(dirty);
  assertEquals(redacted, { keep: clean, b: [`x ${REDACTED}`] });
  assertStrictEquals(redacted.keep, clean);
  assertStrictEquals(redactor.redact(redacted), redacted);
});

Deno.test("redact() replaces secrets in keys too", () => {
  const data = JSON.parse(`{"a":1,"${SECRET}":{"__proto__":2,"b":"${SECRET}"},"c":3}`);
  assertEquals(
    JSON.stringify(new Redactor([SECRET]).redact(data)),
    `{"a":1,"${REDACTED}":{"__proto__":2,"b":"${REDACTED}"},"c":3}`,
  );
});

const SPELLINGS: Record<string, (secret: string) => string> = {
  "as it is": (secret) => secret,
  "in JSON": (secret) => JSON.stringify(secret).slice(1, -1),
  "in a URL": encodeURIComponent,
  "in a URL in lower case": (secret) =>
    encodeURIComponent(secret).replace(/%../g, (escape) => escape.toLowerCase()),
  "in a form": (secret) => new URLSearchParams({ k: secret }).toString().slice(2),
  "in base64": (secret) => Buffer.from(secret).toString("base64"),
  "in base64url": (secret) => Buffer.from(secret).toString("base64url"),
  "in hex": (secret) => Buffer.from(secret).toString("hex"),
};
for (const [what, spell] of Object.entries(SPELLINGS)) {
  Deno.test(`redactText() replaces a secret ${what}`, () => {
    for (const secret of [SECRET, 'q"uote\\s', "pässwörd 漢字", "plainsecret"]) {
      const spelled = spell(secret);
      const text = new Redactor([secret]).redactText(`before ${spelled} after`);
      assert(text.includes(REDACTED) && !text.includes(spelled), text);
    }
  });
}

Deno.test("redactText() replaces a secret inside the base64 of other bytes", () => {
  const text = fc.string({ maxLength: 7 });
  fc.assert(fc.property(fc.string({ minLength: 12, maxLength: 40 }), text, text, (secret, before, after) => {
    const encoded = Buffer.from(`${before}:${secret}:${after}`).toString("base64");
    const shown = new Redactor([secret]).redactText(encoded);
    const readable = Buffer.from(shown.split(REDACTED).join(""), "base64").toString();
    assert(shown.includes(REDACTED) && !readable.includes(secret), `${encoded} became ${shown}`);
  }));
});

Deno.test("redactText() replaces the longer of two secrets as a whole", () => {
  const redactor = new Redactor(["secret-one", "secret-one-and-more"]);
  assertEquals(redactor.redactText("x secret-one-and-more y secret-one"), `x ${REDACTED} y ${REDACTED}`);
});

Deno.test("redactText() does not replace short values, which are ordinary text", () => {
  assertEquals(new Redactor(["true", "8080", ""]).redactText("true on 8080"), "true on 8080");
});

Deno.test("redactText() replaces a secret without the space around its value", () => {
  const redactor = new Redactor([" s3cr3t-key \n"]);
  assertEquals(redactor.redactText("Bearer s3cr3t-key, is unknown"), `Bearer ${REDACTED}, is unknown`);
  const encoded = Buffer.from("me:s3cr3t-key").toString("base64");
  assert(redactor.redactText(encoded).includes(REDACTED));
  assertEquals(new Redactor(["  abc  "]).redactText("<  abc  > abc"), `<${REDACTED}> abc`);
});

Deno.test("redactText() replaces a secret in JSON with escaped slashes or escaped characters", () => {
  const redactor = new Redactor(["pass/wörd+ключ"]);
  for (
    const text of [
      String.raw`{"key":"pass\/wörd+ключ"}`,
      String.raw`{"key":"pass/w\u00f6rd+\u043a\u043b\u044e\u0447"}`,
      String.raw`{"key":"pass\/w\u00f6rd+\u043a\u043b\u044e\u0447"}`,
    ]
  ) {
    assertEquals(redactor.redactText(text), `{"key":"${REDACTED}"}`);
  }
});

Deno.test("redact() leaves no encoding of a registered secret in any data", () => {
  const secret = fc.string({ minLength: 6, maxLength: 30 });
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 3 }),
      fc.jsonValue(),
      fc.nat(7),
      (secrets, noise, form) => {
        const redactor = new Redactor();
        redactor.register(...secrets);
        const spell = Object.values(SPELLINGS)[form]!;
        const data = { noise, list: secrets.map((value) => `<${spell(value)}>`) };
        const shown = redactor.redact(data).list.join(" ");
        for (const value of secrets) {
          assert(!shown.includes(spell(value)) || REDACTED.includes(spell(value)), shown);
        }
      },
    ),
  );
});

Deno.test("Redactor.partialSecretLength() counts the characters that may begin a secret, and never splits one", () => {
  const redactor = new Redactor(["abcdef", "defxyz", "abcdefghi"]);
  assertEquals(redactor.partialSecretLength("nothing here!"), 0);
  assertEquals(redactor.partialSecretLength("x abc"), 3);
  assertEquals(redactor.partialSecretLength("x abcdef"), 6, "it may be the longer one");
  assertEquals(redactor.partialSecretLength("x abcdefghi"), 0);
  assertEquals(
    redactor.partialSecretLength("x abcdefxy"),
    8,
    "a whole secret lies across the beginning of another",
  );
  assertEquals(new Redactor().partialSecretLength("abc"), 0);
  assert(new Redactor(["aaaaaa"]).partialSecretLength("a".repeat(10_000)) < 100, "however long the text is");
});

Deno.test("estimateEventBytes() finds a secret in frozen data that was clean before the secret was registered", () => {
  const text = toFrozenObject({ text: `a ${SECRET} b` });
  const data = toFrozenObject({ message: text });
  const bytes = estimateJsonBytes(data);
  const other = new Redactor(["another secret"]);
  const redactor = other.child();
  assertEquals(redactor.estimateEventBytes("context:message", data), bytes);
  redactor.register(SECRET);
  assertEquals(redactor.estimateEventBytes("context:message", data), NaN);
  assertEquals(redactor.estimateEventBytes("context:message", toFrozenObject({ again: [text] })), NaN);
  assertEquals(other.estimateEventBytes("context:message", data), NaN); // a child's secrets reach its parent
  assertEquals(new Redactor(["another secret"]).estimateEventBytes("context:message", data), bytes);
});

Deno.test("estimateEventBytes() is estimateJsonBytes() for what redactEvent() does not change, else NaN", () => {
  const redactor = new Redactor(["s3cret-value"]);
  const json = fc.jsonValue();
  const holding = fc.constantFrom<unknown>(
    "a s3cret-value in a text",
    ["one", ["s3cret-value"]],
    { deep: [{ api_key: "x" }] },
    { "key s3cret-value": 1 },
    { password: { of: "any type" } },
  );
  const event = fc.constantFrom("tool:post", "context:message", "llm:request", "tool-x:called");
  const value = fc.oneof(json, fc.record({ a: json, b: fc.oneof(json, holding) }));
  fc.assert(fc.property(event, value, (event, value) => {
    const data = { value };
    const clean = redactor.redactEvent(event, data) === data;
    assertEquals(redactor.estimateEventBytes(event, data), clean ? estimateJsonBytes(data) : NaN);
  }));
});

Deno.test("redactEvent() replaces fields by name in modules' own events, never in the conversation", () => {
  const redactor = new Redactor(["s3cret-value"]);
  const data = { tool_input: { token: 5, note: "my s3cret-value" }, auth: { user: "x" } };
  const by_value = { tool_input: { token: 5, note: `my ${REDACTED}` }, auth: { user: "x" } };
  for (
    const event of ["tool:pre", "tool:post", "approval:required", "provider:response", "context:message"]
  ) {
    assertEquals(redactor.redactEvent(event, data), by_value, event);
  }
  for (const event of ["tool-x:called", "llm:request", "tool:called"]) {
    const by_name = { tool_input: { token: REDACTED, note: `my ${REDACTED}` }, auth: REDACTED };
    assertEquals(redactor.redactEvent(event, data), by_name as unknown as typeof data, event);
  }
});

Deno.test("redactEvent() leaves no beginning of a secret at the end of a truncated preview", () => {
  const redactor = new Redactor(["s3cret-value"]);
  const cut = { response_preview: "it is s3cret-v", length: 300 };
  assertEquals(redactor.redactEvent("prompt:complete", cut), { response_preview: "it is ", length: 300 });
  assertEquals(redactor.estimateEventBytes("prompt:complete", cut), NaN);
  const whole = { response_preview: "it is s3cret-v", length: 14 };
  assertStrictEquals(redactor.redactEvent("prompt:complete", whole), whole);
});

Deno.test("redactError() replaces secrets in all displayed parts of an error, and keeps its code", () => {
  const redactor = new Redactor(["s3cret-value"]);
  const plain = new PreampError("plan_invalid", "Cannot read the plan");
  assertStrictEquals(redactor.redactError(plain), plain);
  const coded = redactor.redactError(
    new PreampError("module_load_failed", "bad s3cret-value", {
      details: [{ path: "a", message: "s3cret-value" }],
      facts: { at: "s3cret-value" },
    }),
  ) as PreampError;
  assertEquals([coded.code, coded.message, coded.details, coded.facts], [
    "module_load_failed",
    `bad ${REDACTED}`,
    [{ path: "a", message: REDACTED }],
    { at: REDACTED },
  ]);
  const other = redactor.redactError(new RangeError("s3cret-value is too much")) as Error;
  assertEquals([other.name, other.message], ["RangeError", `${REDACTED} is too much`]);
  assertEquals(other.stack?.includes("s3cret-value"), false);
  assertEquals(String(redactor.redactError("s3cret-value")), `Error: ${REDACTED}`);
});

Deno.test("register() registers secrets with the parent, and removes the oldest values beyond max_values, never the permanent ones", () => {
  const parent = new Redactor(["given-1"], { max_values: 2 });
  const child = new Redactor([], { parent });
  for (const secret of ["second-2", "third-3", "fourth-4"]) child.register(secret);
  assertEquals(
    parent.redactText("given-1 second-2 third-3 fourth-4"),
    `${REDACTED} second-2 ${REDACTED} ${REDACTED}`,
  );
  assertEquals(child.redactText("given-1 second-2"), `given-1 ${REDACTED}`);
});

Deno.test("redactEvent() leaves the bytes of images as they are, and searches what is beside them", () => {
  const redactor = new Redactor(["AAAAEAAAAB", "a-secret-name"]);
  const source = { type: "base64", media_type: "image/png", data: PNG };
  assert(PNG.includes("AAAAEAAAAB"));
  const data = { message: { role: "user", content: [{ type: "image", source }] } };
  assert(!Number.isNaN(redactor.estimateEventBytes("context:message", data)));
  assertEquals(redactor.redactEvent("context:message", data), data);
  const searched = [
    { type: "image", source, name: "a-secret-name" },
    { type: "image", source: { ...source, name: "a-secret-name" } },
    { type: "image", source: { ...source, data: "AAAAEAAAAB" } },
    { type: "text", source },
  ];
  for (const block of searched) {
    assert(Number.isNaN(redactor.estimateEventBytes("context:message", { block })));
    assertStringIncludes(JSON.stringify(redactor.redactEvent("context:message", { block })), REDACTED);
  }
});
