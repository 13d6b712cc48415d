/** `provider-replay` with `record`: answers are recorded to a file, and played when the file is there. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import { LLMError } from "../../src/sdk/llm_errors.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Coordinator, JsonObject } from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { refusal } from "../support/plans.ts";

const OPERATOR: Caller = { name: "terminal", namespace: "local", origin: "operator" };
const SECRET = "sk-live-0123456789abcdef";

interface Options {
  /** Answers of the real provider; without them it has no key. */
  answers?: ConstructorParameters<typeof MockProvider>[0];
  system?: string;
  permissions?: JsonObject;
  env?: Record<string, string>;
  agents?: JsonObject;
  tool?: () => unknown;
  limits?: JsonObject;
}

/** A folder with a recording, and programs that run a plan with it. */
async function lab() {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/recordings/support.json`;
  let calls = 0;

  /** Runs prompts of one session in a program of its own; returns the runs and their events. */
  async function program(prompts: string[], options: Options = {}) {
    const { answers, system = "Be brief.", permissions = { write: true }, env = {}, agents } = options;
    const runtime = createRuntime({
      env: (name) => env[name],
      modules: {
        "provider-real": async (coordinator: Coordinator) => {
          if (answers === undefined) {
            return { skipped: "Cannot use provider-real without a key: set REAL_KEY" };
          }
          const provider = new MockProvider({ name: "real", chunk_chars: 5, ...answers });
          const complete = provider.complete.bind(provider);
          provider.complete = (request, given) => {
            calls++;
            return complete(request, given);
          };
          await coordinator.mount("providers", provider);
        },
        "tool-look": async (coordinator: Coordinator) =>
          await coordinator.mount("tools", {
            name: "look",
            description: "Looks.",
            execute: options.tool ?? (() => Promise.resolve("seen")),
          }),
        "tool-secret": async (coordinator: Coordinator, config: JsonObject = {}) =>
          await coordinator.mount("tools", {
            name: "secret",
            description: "Returns its token.",
            execute: () => Promise.resolve(`token ${config.token}`),
          }),
      },
    });
    const plan: JsonObject = {
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      system,
      providers: [
        "provider-real",
        { module: "provider-replay", permissions, config: { record: file, provider: "real" } },
      ],
      tools: ["tool-look", { module: "tool-secret", config: { token: "${TOKEN:-none}" } }, "tool-task"],
      ...(agents ? { agents } : {}),
      ...(options.limits ? { limits: options.limits } : {}),
    };
    try {
      const runs: Run[] = [];
      const events: string[] = [];
      let session_id: string | undefined;
      for (const prompt of prompts) {
        const request = { prompt, plan, ...(session_id ? { session_id } : {}) };
        const handle = await runtime.runs.create(request, OPERATOR, {});
        const run = await handle.settled("end");
        session_id = run.session_id;
        runs.push(run);
        const entries = await runtime.runs.events(OPERATOR, run.id, {});
        events.push(
          ...entries.filter(({ event }) => !/^module:|^session:state$|^content_block:delta$/.test(event)).map(
            ({ event }) => event,
          ),
        );
      }
      return { runs, events };
    } finally {
      await runtime.close();
    }
  }

  return {
    file,
    program,
    calls: () => calls,
    text: () => Deno.readTextFile(file),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

const LOOK = {
  tool_calls: [{ name: "look" }, { name: "look" }],
  usage: { input_tokens: 100, output_tokens: 7 },
};

/** Facts of a run that must be the same when it is played. */
function factsOf({ status, output_text, usage, turn_count, tool_call_count, error }: Run): JsonObject {
  return { status, output_text, usage, turn_count, tool_call_count, error };
}

Deno.test("a recorded run plays without the provider: the same events, usage and text", async () => {
  await using kit = await lab();
  const answers = { responses: [LOOK, "Two looks were enough."] };
  const recorded = await kit.program(["look twice"], { answers });
  assertEquals([recorded.runs[0]!.output_text, kit.calls()], ["Two looks were enough.", 2]);
  assertEquals(recorded.runs[0]!.usage.input_tokens, 110, "each call is counted once");
  assertEquals(recorded.events.filter((event) => event === "provider:response").length, 2);
  const played = await kit.program(["look twice"]);
  assertEquals(kit.calls(), 2);
  assertEquals(factsOf(played.runs[0]!), factsOf(recorded.runs[0]!));
  assertEquals(played.events, recorded.events);
  const again = await kit.program(["look twice"], { answers });
  assertEquals(
    [again.runs[0]!.output_text, kit.calls()],
    ["Two looks were enough.", 2],
    "a key changes nothing",
  );
});

Deno.test("a failure is recorded with its facts, and fails again", async () => {
  await using kit = await lab();
  const error = new LLMError("AuthenticationError", "the key was refused", { status_code: 401 });
  const recorded = await kit.program(["hi"], { answers: { responses: [{ error }] } });
  const played = await kit.program(["hi"]);
  assertEquals(recorded.runs[0]!.error, {
    code: "provider_auth",
    message: "the key was refused (HTTP 401)",
  });
  assertEquals(factsOf(played.runs[0]!), factsOf(recorded.runs[0]!));
  assertEquals(played.events, recorded.events);
});

Deno.test("later runs of a recorded session are recorded and played too", async () => {
  await using kit = await lab();
  const recorded = await kit.program(["first", "second"], {
    answers: { responses: [(request) => `${request.messages.length} messages`] },
  });
  assertEquals(recorded.runs.map(({ output_text }) => output_text), ["2 messages", "4 messages"]);
  const played = await kit.program(["first", "second"]);
  assertEquals(played.runs.map(factsOf), recorded.runs.map(factsOf));
});

Deno.test("sub-agents are recorded to the file of their parent", async () => {
  await using kit = await lab();
  const agents = { helper: { description: "Helps.", system: "You help." } };
  const task = {
    tool_calls: [1, 2].map((n) => ({
      name: "task",
      arguments: { agent: "helper", instruction: `part ${n}` },
    })),
  };
  const answers = {
    responses: [(request: { messages: { role: string; content: unknown }[] }) => {
      const last = request.messages.at(-1);
      return last?.role === "user" && last.content === "split it"
        ? task
        : `done: ${JSON.stringify(last?.content)}`;
    }],
  };
  const recorded = await kit.program(["split it"], { answers, agents });
  assertMatch(recorded.runs[0]!.output_text, /^done: /);
  const calls = kit.calls();
  assert(calls >= 4, `${calls} calls`);
  const played = await kit.program(["split it"], { agents });
  assertEquals([factsOf(played.runs[0]!), kit.calls()], [factsOf(recorded.runs[0]!), calls]);
});

Deno.test("a changed request says what differs and how to record again", async () => {
  await using kit = await lab();
  await kit.program(["look"], { answers: { responses: [LOOK, "done"] } });
  const changes: [Options, string][] = [
    [
      { system: "Be very brief." },
      'call 1 at messages[0].content: recorded "Be brief.", received "Be very brief."',
    ],
    [
      { tool: () => Promise.resolve("nothing") },
      'call 2 at messages[3].content: recorded "seen", received "nothing"',
    ],
  ];
  for (const [options, difference] of changes) {
    const { runs: [run] } = await kit.program(["look"], options);
    assertEquals([run!.status, run!.error?.code], ["failed", "provider_bad_response"]);
    assertStringIncludes(run!.error?.message ?? "", difference);
    assertStringIncludes(
      run!.error?.message ?? "",
      "delete the file, and run once with the provider's key, to record again",
    );
  }
  const { runs: [run] } = await kit.program(["look around"]);
  assertStringIncludes(
    run!.error?.message ?? "",
    'messages[1].content: recorded "look", received "look around"',
  );
});

Deno.test("the file has no secret, and plays in a program with another one", async () => {
  await using kit = await lab();
  const answers = {
    responses: [{ tool_calls: [{ name: "secret" }] }, `The token is ${SECRET}, yes.`],
    chunk_chars: 4,
  };
  const recorded = await kit.program(["tell"], { answers, env: { TOKEN: SECRET } });
  assert(!(await kit.text()).includes(SECRET) && (await kit.text()).includes("[REDACTED]"));
  const played = await kit.program(["tell"], { env: { TOKEN: "sk-other-fedcba9876543210" } });
  assertEquals(played.runs[0]!.status, "completed");
  assertEquals(played.runs[0]!.output_text, recorded.runs[0]!.output_text);
});

Deno.test("without a recording and without a key, the run is refused with the key's variable", async () => {
  await using kit = await lab();
  const error = await refusal(() => kit.program(["hi"]));
  assertEquals(error.code, "module_load_failed");
  assertStringIncludes(error.message, "set REAL_KEY");
});

Deno.test("the plan must grant the file: reading to play, writing to record", async () => {
  await using kit = await lab();
  const answers = { response: "hi" };
  const folder = kit.file.slice(0, kit.file.lastIndexOf("/"));
  for (const permissions of [{}, { write: false }, { write: ["/elsewhere"] }, { read: true }]) {
    const { runs: [run] } = await kit.program(["hi"], { answers, permissions });
    const [warning] = run!.warnings;
    assertMatch(
      warning?.message ?? "",
      /Cannot (read|record to) .*: permissions\.(read|write) of .* does not cover "/,
    );
  }
  assertEquals(
    (await kit.program(["hi"], { answers, permissions: { write: [folder] } })).runs[0]!.warnings,
    [],
  );
  const { runs: [played] } = await kit.program(["hi"], { permissions: { read: [folder] } });
  assertEquals([played!.output_text, played!.status], ["hi", "completed"]);
});

Deno.test("a file of another form is refused and kept", async () => {
  await using kit = await lab();
  await Deno.mkdir(kit.file.slice(0, kit.file.lastIndexOf("/")));
  await Deno.writeTextFile(kit.file, '{"version": 2}');
  const error = await refusal(() => kit.program(["hi"]));
  assertStringIncludes(
    error.details.map(({ message }) => message).join(),
    "it is not one of provider-replay",
  );
  assertEquals(await kit.text(), '{"version": 2}');
});

Deno.test("a reached limit is not recorded as an answer", async () => {
  await using kit = await lab();
  const { runs: [run] } = await kit.program(["look"], {
    answers: { responses: [LOOK] },
    limits: { max_iterations: 1 },
  });
  assertEquals(run!.stop_reason, "limit:max_iterations");
  assertEquals(JSON.parse(await kit.text()).calls.length, 1);
});
