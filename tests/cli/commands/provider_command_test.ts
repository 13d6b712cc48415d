import { cli } from "../../../src/cli/mod.ts";
import { EXIT } from "../../../src/cli/errors.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

const KEY = "sk-ant-0123456789-secret";

/** Runs a command with these variables. */
async function preamp(args: string[], env: Record<string, string> = {}) {
  const io = fakeIo({ env });
  return { code: await cli(["provider", ...args], io), out: io.stdout, err: io.stderr };
}

Deno.test("provider list names the variable of each key, whether it is set, and the default model", async () => {
  const none = await preamp(["list"]);
  assertEquals([none.code, none.err], [EXIT.done, ""]);
  assertMatch(none.out, /^anthropic +not set +ANTHROPIC_API_KEY +claude-\S+$/m);
  assertMatch(none.out, /^mock +not needed +- +-$/m);
  const set = await preamp(["list", "--json"], { ANTHROPIC_API_KEY: KEY });
  const { data } = JSON.parse(set.out);
  const { default_model, ...anthropic } = data.find(({ provider }: { provider: string }) =>
    provider === "anthropic"
  );
  assertEquals(anthropic, {
    provider: "anthropic",
    module: "provider-anthropic",
    display_name: "Anthropic",
    variables: ["ANTHROPIC_API_KEY"],
    set_variable: "ANTHROPIC_API_KEY",
    needs_key: true,
  });
  assert(typeof default_model === "string" && !set.out.includes(KEY));
});

Deno.test("provider models lists what -m takes, and reports a missing key with exit code 1", async () => {
  const listed = await preamp(["models", "mock"]);
  assertEquals([listed.code, listed.err], [EXIT.done, ""]);
  assertMatch(listed.out, /^mock\/mock-model +100000 +4096$/m);
  const json = await preamp(["models", "mock", "anthropic", "--json"]);
  const { data, errors } = JSON.parse(json.out);
  assertEquals([json.code, data.length, data[0].model], [EXIT.failed, 1, "mock/mock-model"]);
  assertEquals(errors.map(({ provider, code }: Record<string, string>) => [provider, code]), [
    ["anthropic", "module_load_failed"],
  ]);
  assertMatch(errors[0].message, /set the variable ANTHROPIC_API_KEY.*https:/);
});

Deno.test("provider test reports latency, usage and cost, or the error", async () => {
  const { code, out } = await preamp(["test", "mock", "-m", "anthropic/x", "--json"]);
  const [mock, anthropic] = JSON.parse(out).data;
  assertEquals([code, mock.model, mock.ok, mock.error], [EXIT.failed, "mock", true, null]);
  assert(mock.latency_ms >= 0 && mock.usage.input_tokens > 0 && mock.usage.cost_usd === null);
  assertEquals([anthropic.model, anthropic.ok, anthropic.latency_ms, anthropic.usage], [
    "anthropic/x",
    false,
    null,
    null,
  ]);
  assertEquals([anthropic.error.code, anthropic.error.advice], ["module_load_failed", null]);
  assertStringIncludes(anthropic.error.message, "ANTHROPIC_API_KEY");
  const text = await preamp(["test", "mock"]);
  assertEquals([text.code, text.err], [EXIT.done, ""]);
  assertMatch(text.out, /^mock +ok +\d+ ms +\d+ in, \d+ out +unknown$/m);
});

Deno.test("without a provider and without a key, the variables are named", async () => {
  for (const name of ["test", "models"]) {
    const { code, err } = await preamp([name]);
    assertEquals(code, EXIT.usage);
    assertMatch(err, /no key is set; set ANTHROPIC_API_KEY.* or name a provider: anthropic/);
  }
  const unknown = await preamp(["test", "antropic"]);
  assertEquals(unknown.code, EXIT.usage);
  assertStringIncludes(unknown.err, "did you mean anthropic?");
});
