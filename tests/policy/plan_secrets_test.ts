import fc from "fast-check";
import { withoutPlanSecrets } from "../../src/policy/plan_secrets.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals } from "../assert.ts";

/** A secret that no rule knows by its form. */
const SECRET = "Zebra7Quill";

function configOf(config: unknown): unknown {
  const { tools: [tool] } = withoutPlanSecrets({ tools: [{ module: "tool-mcp", config }] }) as {
    tools: [{ config: unknown }];
  };
  return tool.config;
}

/** Places of a secret in a config → what is displayed there. */
const PLACES: readonly (readonly [unknown, unknown])[] = [
  [{ headers: { "X-Team": SECRET } }, { headers: { "X-Team": "[REDACTED]" } }],
  [{ extra_headers: { a: SECRET } }, { extra_headers: { a: "[REDACTED]" } }],
  [{ headers: { a: [SECRET] } }, { headers: { a: "[REDACTED]" } }],
  [{ headers: [`X-Team: ${SECRET}`] }, { headers: ["X-Team: [REDACTED]"] }],
  [{ env: { REGION: SECRET, PORT: 12345 } }, { env: { REGION: "[REDACTED]", PORT: "[REDACTED]" } }],
  [{ env: [`REGION=${SECRET}`] }, { env: ["REGION=[REDACTED]"] }],
  [{ url: `https://ada:${SECRET}@a.example/x` }, { url: "https://[REDACTED]@a.example/x" }],
  [{ url: `https://${SECRET}@a.example` }, { url: "https://[REDACTED]@a.example" }],
  [{ url: `https://a.example/x?id=${SECRET}&b` }, { url: "https://a.example/x?id=[REDACTED]&b" }],
  [{ url: `https://a.example?x=${SECRET}#top` }, { url: "https://a.example?x=[REDACTED]#top" }],
  [[`see <postgres://u:${SECRET}@h:5432/db?a=${SECRET}>`], [
    "see <postgres://[REDACTED]@h:5432/db?a=[REDACTED]>",
  ]],
  [{ args: ["--api-key", SECRET, "x"] }, { args: ["--api-key", "[REDACTED]", "x"] }],
  [{ args: ["-token", SECRET] }, { args: ["-token", "[REDACTED]"] }],
  [{ args: [`--access-key=${SECRET}`] }, { args: ["--access-key=[REDACTED]"] }],
  [{ args: ["--header", `X-Team: ${SECRET}`] }, { args: ["--header", "X-Team: [REDACTED]"] }],
  [{ args: ["run", "-e", `REGION=${SECRET}`] }, { args: ["run", "-e", "REGION=[REDACTED]"] }],
  [{ args: [`GITHUB_TOKEN=${SECRET}`] }, { args: ["GITHUB_TOKEN=[REDACTED]"] }],
  [{ command: `server --port 3 --password ${SECRET} -v` }, {
    command: "server --port 3 --password [REDACTED] -v",
  }],
  [{ command: `API_KEY='${SECRET} x' server` }, { command: "API_KEY=[REDACTED] server" }],
];

Deno.test("withoutPlanSecrets() replaces what is a secret by its place", () => {
  for (const [config, displayed] of PLACES) assertEquals(configOf(config), displayed);
});

Deno.test("withoutPlanSecrets() leaves references, names, and what is no secret", () => {
  const config = {
    headers: { authorization: "Bearer ${TOKEN}", "x-key": "${A}${B}", empty: "" },
    env: { TOKEN: "${TOKEN}", NONE: null },
    permissions: { env: ["AWS_REGION"], read: true },
    nested: [{ env: true }],
    url: "https://${USER}:${PASSWORD}@a.example:8443/x/y?key=${KEY}&flag",
    args: ["--token", "${TOKEN}", "--api-key", "--verbose", "--port", "3", "--key=${KEY}"],
    command: "server --token-limit 300 --total-tokens 5 a=b",
    text: "A sentence with a token in it; the secret is out. 1 - 2 = -1",
  };
  assertEquals(configOf(config), config);
});

Deno.test("withoutPlanSecrets() lets no secret out wherever the place is in a plan, and keeps all else", () => {
  const data = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<unknown>(...PLACES.map(([config]) => config)),
      fc.constantFrom<unknown>(1, true, null, "plain", "--x", "https://a.example/b"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("config", "tools", "servers", "url", "args", "system"), tie("value"), {
        maxKeys: 3,
      }),
    ),
  })).value;
  fc.assert(fc.property(data, (value) => {
    const plan = { config: value } as JsonObject;
    const before = JSON.stringify(plan);
    const shown = JSON.stringify(withoutPlanSecrets(plan));
    assert(!shown.includes(SECRET), shown);
    assertEquals(JSON.stringify(plan), before);
    if (!before.includes(SECRET)) assertEquals(shown, before);
  }));
});

Deno.test("withoutPlanSecrets() reads each character of a long text a few times", () => {
  const long = 200_000;
  for (
    const text of [
      "a".repeat(long),
      "a ".repeat(long / 2),
      "--a ".repeat(long / 4),
      "a://".repeat(long / 4),
      " ".repeat(long),
    ]
  ) {
    const plan = { config: { text: `${text}://`, list: [text] } };
    assertEquals(Object.keys(withoutPlanSecrets(plan)), ["config"]);
  }
});
