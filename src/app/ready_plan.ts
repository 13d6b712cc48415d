/** The plan of one run, with its modules. */
import {
  checkOpened,
  checkSchemaSize,
  expandConfig,
  type LookUp,
  type LookUps,
  readableVariables,
  schemaOf,
  unsetVariables,
} from "./plan_configs.ts";
import { type AuthorisedPlan, grantOf } from "./module_permissions.ts";
import { planFolder } from "./plan_folders.ts";
import type { ModuleTable } from "./module_table.ts";
import type { LazyLoader, LazySandbox } from "./lazy_loader_and_sandbox.ts";
import { acceptConfigs, located, type ResolvedPlan } from "./plan_finder.ts";
import type { ProjectInstructions } from "./project_instructions.ts";
import { openBuiltin } from "./plan_template.ts";
import { isOfUrl, UrlModules } from "./remote_modules.ts";
import type { OpenedModule } from "../kernel/host.ts";
import type { CompiledPlan, PlanText } from "../plan/compile.ts";
import { isRequestHeader } from "../plan/env.ts";
import { askedOf, isAsked } from "../plan/permissions/permission_block.ts";
import { checkTexts, type Lock, LockLookup } from "../plan/lock.ts";
import type { AgentPlans, ModuleReporter, RunnablePlan, SecretSink } from "../runs/ports.ts";
import type { Warning } from "../runs/types.ts";
import { canonicalHash } from "../sdk/digest.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { Module, ModuleSpec, RunLimits } from "../sdk/types.ts";

/** What a lock lacks of a plan without texts. */
const NO_TEXTS: ReturnType<typeof checkTexts> = { missing: [], changed: [] };

/** What steers the model beside the text of the plan. */
export interface Steering {
  /** Instructions of the project; null if the plan does not ask for them. */
  readonly project: ProjectInstructions | null;
  /** Texts in files that the plan names or its modules read. */
  readonly texts: readonly PlanText[];
  /** Hash of the plan with these texts. */
  readonly plan_hash: string;
}

/** Collaborators of {@link ReadyPlan}. */
export interface ReadyPlanDeps {
  readonly modules: ModuleTable;
  /** Environment variables of the process. */
  readonly env: (name: string) => string | undefined;
  readonly loading: LazyLoader;
  readonly sandboxing: LazySandbox;
}

/** An authorised plan for one run. */
export class ReadyPlan implements RunnablePlan {
  readonly compiled: CompiledPlan;
  readonly limits: RunLimits;
  readonly cost_is_asked_for: boolean;
  readonly lock_hash: string | null;
  readonly warnings: readonly Warning[];
  readonly base_url?: string;
  readonly instructions?: NonNullable<RunnablePlan["instructions"]>;
  readonly agents: AgentPlans;
  readonly withConsole?: NonNullable<RunnablePlan["withConsole"]>;
  readonly #deps: ReadyPlanDeps;
  readonly #found: ResolvedPlan;
  readonly #authorised: AuthorisedPlan;
  readonly #lookups: LookUps;
  readonly #unlocked_servers: readonly (Warning & { path: string })[];
  /** The texts that the lock lacks, and those that it contradicts. */
  readonly #texts: ReturnType<typeof checkTexts>;
  #url_modules: UrlModules | undefined;
  /**
   * Configs that were expanded to register their secrets. The first caller of {@link open} receives the
   * config itself.
   */
  readonly #expanded = new Map<ModuleSpec, JsonObject>();

  /**
   * @param headers Returns a header of the request.
   * @param child Implements {@link AgentPlans.child}.
   */
  constructor(
    deps: ReadyPlanDeps,
    found: ResolvedPlan,
    authorised: AuthorisedPlan,
    headers: LookUp,
    steering: Steering,
    child: AgentPlans["child"],
  ) {
    const { project, plan_hash, texts } = steering;
    const { template, grants, policy, context, origin, base_url } = authorised;
    const { lock } = context;
    const { limits } = policy;
    this.#deps = deps;
    this.#found = found;
    this.#authorised = authorised;
    this.#lookups = {
      plan: readableVariables(grants, deps.env, headers),
      keys: deps.env,
      supplied: { settings: policy.mcp.servers, lock: lock?.servers ?? {} },
      folder: planFolder(origin, base_url),
    };
    const compiled = plan_hash === template.compiled.plan_hash
      ? template.compiled
      : { ...template.compiled, plan_hash };
    this.compiled = project === null ? compiled : withInstructions(compiled, project);
    this.#texts = texts.length === 0 ? NO_TEXTS : checkTexts(lock, texts, base_url);
    if (project !== null) this.instructions = project.files;
    this.limits = grants.limits;
    this.cost_is_asked_for = grants.cost_limit === "asked";
    this.lock_hash = lock === undefined ? null : canonicalHash(lock);
    const unset = unsetVariables(
      template.compiled,
      (name) => isRequestHeader(name) ? headers(name) : deps.env(name),
    );
    this.#unlocked_servers = unlockedServers(template.specs, lock, deps.modules);
    const loose = lock === undefined ? [] : [
      ...unlocked(template.specs, lock, base_url),
      ...this.#unlocked_servers,
      ...this.#texts.missing.map((name) => ({
        code: "text_not_locked",
        message: `The lock does not have the text ${name}: run preamp plan lock`,
      })),
    ];
    const unread = (project?.warnings ?? []).map((message) => ({ code: "instructions_unread", message }));
    this.warnings = unset.length + loose.length + unread.length === 0
      ? template.run_warnings
      : [...template.run_warnings, ...unset, ...loose, ...unread];
    if (base_url !== undefined) this.base_url = base_url;
    this.agents = { origin, max_depth: limits.max_depth, max_sessions: limits.max_sessions, child };
    if (template.specs.some((spec) => isOfUrl(spec) && grants.tiers[spec.path] === "inline")) {
      this.withConsole = runWithConsole;
    }
  }

  registerSecrets(secrets: SecretSink): void {
    const { specs, opened } = this.#authorised.template;
    for (const spec of specs) if (!opened.has(spec)) this.#expanded.set(spec, this.#expand(spec, secrets));
  }

  #expand(spec: ModuleSpec, secrets: SecretSink): JsonObject {
    return expandConfig(spec, schemaOf(spec, this.#deps.modules), this.#lookups, secrets);
  }

  async load(): Promise<void> {
    const { missing: [unlocked], changed: [changed] } = this.#texts;
    if (changed !== undefined) {
      throw new PreampError(
        "module_integrity_mismatch",
        `Cannot use the text ${changed}: it has changed since the plan was locked; review it, and run preamp plan lock`,
      );
    }
    if (unlocked !== undefined && this.#authorised.policy.modules.frozen) {
      throw new PreampError(
        "module_pin_required",
        `Cannot use the text ${unlocked}: the lock does not have it; run preamp plan lock`,
      );
    }
    const [server] = this.#authorised.policy.modules.frozen ? this.#unlocked_servers : [];
    if (server) {
      throw new PreampError(
        "module_pin_required",
        `Cannot use an MCP server without a lock: ${server.message}`,
        {
          details: [{ path: server.path, message: server.message }],
        },
      );
    }
    if (this.#authorised.template.specs.some(isOfUrl)) await this.#urlModules().load();
  }

  #urlModules(): UrlModules {
    const { template: { specs }, context, policy, grants } = this.#authorised;
    return this.#url_modules ??= new UrlModules({
      ...this.#deps,
      specs,
      context,
      policy,
      tierOf: ({ path }) => grants.tiers[path] ?? "process", // an unknown place gets the strongest tier
      grantOf: (spec) => ({
        grant: grantOf(spec, this.#authorised),
        isAsked: (kind, entry) => isAsked(kind, entry, askedOf(spec, this.compiled.plan)),
      }),
      folder: this.#lookups.folder,
    });
  }

  async open(spec: ModuleSpec, secrets: SecretSink, reporter: ModuleReporter): Promise<OpenedModule> {
    const opened = await this.#open(spec, secrets, reporter);
    if (askedOf(spec, this.compiled.plan) === undefined) return opened;
    return { ...opened, permissions: grantOf(spec, this.#authorised) };
  }

  async #open(spec: ModuleSpec, secrets: SecretSink, reporter: ModuleReporter): Promise<OpenedModule> {
    const shared = this.#authorised.template.opened.get(spec);
    if (shared) return shared;
    const config = this.#expanded.get(spec) ?? this.#expand(spec, secrets);
    this.#expanded.delete(spec); // the module may change it
    if (isOfUrl(spec)) return await this.#openUrl(spec, config, reporter);
    const { modules } = this.#deps;
    const module = await modules.module(spec.module);
    if (!modules.isOwn(spec.module)) return openBuiltin(module, config);
    return {
      config,
      isolation: "inline",
      integrity: null,
      load_timeout_s: this.#authorised.policy.isolation.load_timeout_s,
      module,
      checkConfig: () => this.#checkOpened(spec, module, config, reporter),
    };
  }

  async #openUrl(spec: ModuleSpec, config: JsonObject, reporter: ModuleReporter): Promise<OpenedModule> {
    const opened = await this.#urlModules().open(spec, reporter);
    const checkConfig = () => {
      checkSchemaSize(spec, opened.module);
      return this.#checkOpened(spec, opened.module, config, reporter);
    };
    return { ...opened, config, checkConfig };
  }

  /**
   * Resolves to the config to mount an opened module with, and reports its warnings.
   *
   * @throws {PreampError} `plan_invalid`.
   */
  async #checkOpened(
    spec: ModuleSpec,
    module: Pick<Module, "module">,
    expanded: JsonObject,
    reporter: ModuleReporter,
  ): Promise<JsonObject> {
    const { findings, config } = checkOpened(
      spec,
      module,
      expanded,
      this.compiled.written,
      this.#lookups.folder,
    );
    for (const { code, message, hint } of findings.warnings) {
      reporter.warn(code, hint === undefined ? message : `${message} (${hint})`);
    }
    try {
      acceptConfigs(findings, this.#found);
    } catch (error) {
      throw await located(error, this.#found);
    }
    return config;
  }
}

/** Returns the plan with the instructions of its project after its own system text. */
function withInstructions(compiled: CompiledPlan, { text }: ProjectInstructions): CompiledPlan {
  const { plan } = compiled;
  const system = plan.system === undefined ? text : `${plan.system.trimEnd()}\n\n${text}`;
  return { ...compiled, plan: { ...plan, system } };
}

/**
 * Implements {@link RunnablePlan.withConsole}. Imports its code for the first module that runs in this
 * process.
 */
async function runWithConsole<T>(write: ModuleReporter["console"], body: () => Promise<T>): Promise<T> {
  const { withModuleConsole } = await import("../loader/link.ts");
  return await withModuleConsole(write, body);
}

/** Returns warnings about MCP servers that the lock lacks. */
function unlockedServers(
  specs: readonly ModuleSpec[],
  lock: Lock | undefined,
  modules: ModuleTable,
): (Warning & { path: string })[] {
  return specs.filter((spec) => !isOfUrl(spec) && modules.ids.has(spec.module)).flatMap((spec) => {
    const module = modules.module(spec.module);
    const servers = module instanceof Promise ? undefined : module.servers?.(spec.config); // the check loaded it
    return (servers ?? []).filter(({ name }) => !lock || !Object.hasOwn(lock.servers, name)).map((
      { name },
    ) => ({
      code: "server_not_locked",
      path: spec.path,
      message: `The lock does not have the server "${name}": run preamp plan lock`,
    }));
  });
}

/** Returns warnings about modules that the lock lacks, so that an outdated lock is noticed. */
function unlocked(specs: readonly ModuleSpec[], lock: Lock, base_url: string | undefined): Warning[] {
  const lookup = LockLookup.of(lock, base_url);
  return specs.filter(isOfUrl).filter(({ source, integrity }) =>
    integrity === undefined && lookup.modulesOf(source).length === 0
  ).map(({ path, module }) => ({
    code: "module_not_locked",
    path,
    message: `The lock does not have module "${module}": run preamp plan lock`,
  }));
}
