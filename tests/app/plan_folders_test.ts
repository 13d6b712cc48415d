/** Tests of the folders of a plan: relative paths, `${PLAN_DIR}` and `${WORKSPACE}`. */
import { pathToFileURL } from "node:url";
import type { Coordinator, GrantedPermissions, JsonObject } from "preamp";
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { RunRequest } from "../../src/runs/types.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/folder.ts";
import { detailAt, refusal } from "../support/plans.ts";

const PATH = { type: "string", format: "path" };
const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    file: PATH,
    files: { type: "array", items: PATH },
    either: { anyOf: [PATH, { type: "null" }] },
    text: { type: "string" },
  },
};

interface Options {
  origin?: "operator" | "caller";
  /** Folder of the plan's file. Default: the plan has none. */
  plan_dir?: string;
  workspace?: string;
  max?: Partial<GrantedPermissions>;
  env?: Record<string, string>;
}

const folderUrl = (path: string) => pathToFileURL(`${path}/`);

/** Runs a plan with a tool of the application; resolves to what the tool received and the run's text. */
async function run(spec: JsonObject, options: Options, plan: JsonObject = {}) {
  const { origin = "operator", plan_dir, workspace, max = {}, env = {} } = options;
  let seen: { permissions: GrantedPermissions; config: JsonObject } | undefined;
  const policy = defaultPolicy();
  Object.assign(policy.permissions.max, max);
  await using runtime = createRuntime({
    policy,
    env: (name) => env[name],
    ...(workspace === undefined ? {} : { workspace: folderUrl(workspace) }),
    modules: {
      "tool-look": {
        module: {
          id: "tool-look",
          name: "look",
          type: "tool",
          mount_point: "tools",
          version: "1.0.0",
          description: "Looks.",
          config_schema: CONFIG_SCHEMA,
        },
        mount(coordinator: Coordinator, config: JsonObject) {
          seen = { permissions: coordinator.permissions, config };
          return coordinator.mount("tools", {
            name: "look",
            description: "Looks.",
            execute: () => JSON.stringify(config),
          });
        },
      },
    },
  });
  const request: RunRequest = {
    prompt: "Look",
    plan: {
      session: { orchestrator: "loop-basic", context: "context-simple" },
      providers: [{
        module: "provider-mock",
        config: { responses: [{ tool_calls: [{ name: "look", arguments: {} }] }, { text: "done" }] },
      }],
      tools: [{ module: "tool-look", ...spec }],
      ...plan,
    },
  };
  const base = plan_dir === undefined ? {} : { base_url: `${folderUrl(plan_dir).href}plan.yaml` };
  const caller = { namespace: "test", name: "test", origin };
  const handle = await runtime.runs.create(request, caller, base);
  const ended = await handle.settled("end");
  const entries = await Array.fromAsync(runtime.runs.follow(caller, handle.id, {}));
  assert(seen, "the tool was mounted");
  return { ...seen, warnings: ended.warnings, log: JSON.stringify(entries) };
}

/** A folder with a plan's folder and a workspace. */
async function folders(): Promise<TemporaryFolder> {
  const folder = await temporaryFolder();
  for (const name of ["plans", "plans/data", "work"]) await Deno.mkdir(`${folder.path}/${name}`);
  return folder;
}

Deno.test("relative paths in permissions and in configs start at the folder of the plan's file", async () => {
  await using folder = await folders();
  const plan_dir = `${folder.path}/plans`;
  const { permissions, config } = await run({
    permissions: { read: ["./data", "/tmp/elsewhere"] },
    config: { file: "./data/a", files: ["b", "../c", "/d"], either: "e", text: "./f" },
  }, { plan_dir, workspace: `${folder.path}/work` });
  assertEquals(permissions.read, [`${plan_dir}/data`, "/tmp/elsewhere"]);
  assertEquals(config, {
    file: `${plan_dir}/data/a`,
    files: [`${plan_dir}/b`, `${folder.path}/c`, "/d"],
    either: `${plan_dir}/e`,
    text: "./f",
  });
});

Deno.test("PLAN_DIR and WORKSPACE are folders in permissions and configs, and no secrets", async () => {
  await using folder = await folders();
  const [plan_dir, workspace] = [`${folder.path}/plans`, `${folder.path}/work`];
  const { permissions, config, log, warnings } = await run({
    permissions: { read: ["${PLAN_DIR}/data", "${WORKSPACE}"], write: ["${WORKSPACE}/new"] },
    config: { text: "in ${WORKSPACE}, of ${PLAN_DIR}", file: "${WORKSPACE}/${NAME}" },
  }, { plan_dir, workspace, env: { WORKSPACE: "/from/the/environment", NAME: "x" } });
  assertEquals(permissions.read, [`${plan_dir}/data`, workspace]);
  assertEquals(permissions.write, [`${workspace}/new`]);
  assertEquals(config, { text: `in ${workspace}, of ${plan_dir}`, file: `${workspace}/x` });
  assertStringIncludes(log, plan_dir);
  assertEquals(warnings, []);
});

Deno.test("WORKSPACE is the plan's folder where no other is set", async () => {
  await using folder = await folders();
  const plan_dir = `${folder.path}/plans`;
  const { permissions } = await run({}, { plan_dir }, { permissions: { read: ["${WORKSPACE}"] } });
  assertEquals(permissions.read, [plan_dir]);
});

Deno.test("an operator's plan without a file has the working folder", async () => {
  const { permissions, config } = await run({
    permissions: { read: ["${PLAN_DIR}"] },
    config: { file: "x", text: "${WORKSPACE}" },
  }, {});
  assertEquals(permissions.read, [await Deno.realPath(Deno.cwd())]);
  assertEquals(config, { file: `${Deno.cwd()}/x`, text: Deno.cwd() });
});

Deno.test("a folder whose name looks like a reference is taken as it is", async () => {
  await using folder = await folders();
  const workspace = `${folder.path}/\${SECRET}`;
  await Deno.mkdir(workspace);
  const { permissions, config } = await run(
    { permissions: { read: ["${WORKSPACE}"] }, config: { file: "${WORKSPACE}/$${a}" } },
    { plan_dir: folder.path, workspace, env: { SECRET: "hidden" } },
  );
  assertEquals(permissions.read, [workspace]);
  assertEquals(config, { file: `${workspace}/\${a}` });
});

Deno.test("a caller's plan has the folder that the operator set, within the policy, and no other", async () => {
  await using folder = await folders();
  const workspace = `${folder.path}/work`;
  const spec = { permissions: { read: ["${WORKSPACE}"] }, config: { text: "${WORKSPACE}" } };
  const { permissions, config } = await run(spec, {
    origin: "caller",
    workspace,
    max: { read: [workspace] },
  });
  assertEquals([permissions.read, config.text], [[workspace], workspace]);

  const beyond = await refusal(() => run(spec, { origin: "caller", workspace }));
  assertEquals([beyond.code, beyond.details[0]?.path], ["policy_refused", "tools[0].permissions.read"]);

  const unset = await refusal(() => run(spec, { origin: "caller", max: { read: true } }));
  assertEquals(unset.code, "plan_invalid");
  const { message, hint } = detailAt(unset, "tools[0].permissions.read[0]");
  assertEquals(message, "Cannot expand ${WORKSPACE}: no folder is set for plans without a file");
  assertStringIncludes(String(hint), "absolute paths");
  detailAt(unset, "tools[0].config.text");

  const none = await refusal(() =>
    run({ config: { text: "${PLAN_DIR}" } }, { origin: "caller", workspace, max: { read: true } })
  );
  assertEquals(
    detailAt(none, "tools[0].config.text").message,
    "Cannot expand ${PLAN_DIR}: the plan has no file",
  );
});

Deno.test("other variables are refused in permissions, and folders where nothing is expanded", async () => {
  await using folder = await folders();
  const options = { plan_dir: folder.path };
  const home = await refusal(() => run({ permissions: { read: ["${HOME}/x"] } }, options));
  assertStringIncludes(
    String(detailAt(home, "tools[0].permissions.read[0]").hint),
    "permissions may have ${PLAN_DIR} and ${WORKSPACE}",
  );
  const source = await refusal(() => run({ source: "${PLAN_DIR}/tool.ts" }, options));
  detailAt(source, "tools[0].source");
});
