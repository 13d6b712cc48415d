import { BUILTIN_IDS, createModuleTable } from "../../src/app/module_table.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import { VENDOR_KEYS, vendorKeys } from "../../src/policy/vendor_keys.ts";
import { isObject } from "../../src/sdk/json.ts";
import { ENGINES } from "../../modules/tool-web/search.ts";
import { assertEquals } from "../assert.ts";

Deno.test("VENDOR_KEYS has the variable of every key that a built-in module takes by itself", async () => {
  const table = createModuleTable();
  const names = new Set<string>(Object.values(ENGINES).map(({ key_variable }) => key_variable));
  for (const id of BUILTIN_IDS) {
    const properties = (await table.module(id)).module?.config_schema?.properties;
    const key = isObject(properties) ? properties.api_key : undefined;
    if (isObject(key) && Array.isArray(key.env_vars)) {
      for (const name of key.env_vars) names.add(String(name));
    }
  }
  assertEquals([...VENDOR_KEYS], [...names].sort());
});

Deno.test("vendorKeys() leaves out what people set where no key is wanted", () => {
  const set: Record<string, string> = {
    OPENAI_API_KEY: " sk-12345678 ",
    OLLAMA_API_KEY: "ollama",
    GROQ_API_KEY: "",
  };
  assertEquals(vendorKeys((name) => set[name]), ["sk-12345678"]);
});

const KEY = "key-of-a-vendor-1234567";
const env = (name: string) => name === "MISTRAL_API_KEY" ? KEY : undefined;
const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { responses: [{ text: `It is ${KEY}.` }] } }],
};

Deno.test("the key of a vendor that no plan uses is redacted in a run", async () => {
  await using runtime = createRuntime({ env });
  const caller = { name: "library", namespace: "test", origin: "operator" } as const;
  const handle = await runtime.runs.create({ plan: PLAN, prompt: `Say ${KEY}` }, caller);
  const run = await handle.settled("end");
  assertEquals(run.output_text, "It is [REDACTED].");
  const events = JSON.stringify(await runtime.runs.events(caller, run.id, { limit: 200 }));
  assertEquals(events.includes(KEY), false);
});
