/** Keys of built-in providers from variables of the process: for the vendor's own address only. */
import { assertEquals } from "../assert.ts";
import { expandConfig } from "../../src/app/plan_configs.ts";
import { processRedactor } from "../../src/policy/redact.ts";
import type { JsonObject } from "../../src/sdk/json.ts";

const SCHEMA = {
  type: "object",
  properties: { api_key: { type: "string", env_vars: ["OPENAI_API_KEY"] }, base_url: { type: "string" } },
};

/** Returns the config that a provider gets, and the number of registered secrets. */
function expanded(config: JsonObject): { config: JsonObject; secrets: number } {
  const spec = {
    module: "provider-openai",
    type: "provider" as const,
    source: { kind: "builtin" as const },
    path: "providers[0]",
    config,
  };
  const keys = (name: string) => name === "OPENAI_API_KEY" ? "sk-server-1234" : undefined;
  const secrets = processRedactor([], () => undefined);
  const result = expandConfig(
    spec as Parameters<typeof expandConfig>[0],
    SCHEMA,
    { plan: keys, keys },
    secrets,
  );
  return { config: result, secrets: secrets.size };
}

Deno.test("a provider without api_key gets the key of its variable, which is a secret", () => {
  assertEquals(expanded({}), { config: { api_key: "sk-server-1234" }, secrets: 1 });
});

Deno.test("a provider with base_url gets no key that its config does not state", () => {
  const base_url = "https://other.example/v1";
  assertEquals(expanded({ base_url }), { config: { base_url }, secrets: 0 });
  assertEquals(expanded({ base_url, api_key: "${OPENAI_API_KEY}" }), {
    config: { base_url, api_key: "sk-server-1234" },
    secrets: 1,
  });
});
