/**
 * The plan that the next run uses: its text, where it came from, and what the server says about it. Checks
 * begin when the text has rested; an answer for an older text is dropped. Knows no DOM.
 */
import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type Data, PreampApiError, type PreampClient, type RunRequest } from "preamp/client";
import { offsetOfPath, readSyntax } from "../plan/syntax.ts";
import { sentenceOf } from "./failures.ts";
import type { TextStorage } from "./tab_storage.ts";

/** A named plan of the server. */
export interface NamedPlan {
  readonly name: string;
  readonly description?: string;
  readonly plan_hash: string;
}

/** Something that is wrong with a plan, or that its author should know. */
export interface Finding {
  readonly level: "error" | "warning";
  /** Place in the plan, such as `tools[0].permissions`; empty for the whole document. */
  readonly path: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  readonly hint?: string;
}

/** Permissions by kind: `net`, `read`, `write`, `env`, `run`, `sys`, `ffi`, `import`. */
export type Permissions = Readonly<Record<string, boolean | readonly string[]>>;

/** One module in the answer of `explain`. */
export interface ExplainedModule {
  readonly module: string;
  readonly type: string;
  readonly path: string;
  readonly description: string | null;
  /** Null: built in. */
  readonly url: string | null;
  readonly isolation: string;
  readonly prompts_to: string | null;
  readonly servers: readonly { readonly name: string; readonly transport: string; readonly target: string }[];
  readonly permissions: { readonly granted: Permissions; readonly refused: Permissions };
}

/** The answer of `POST /v1/plans/explain`, as far as the page shows it. */
export interface Explanation {
  readonly summary: { readonly text: string };
  readonly modules: readonly ExplainedModule[];
  readonly env: readonly string[];
  readonly limits: Data;
  readonly red_flags: readonly { readonly code: string; readonly path: string; readonly message: string }[];
  readonly warnings: readonly { readonly code: string; readonly path?: string; readonly message: string }[];
}

/** One difference of two plans. */
export interface PlanChange {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
  readonly message: string;
}

/** The answer of `POST /v1/plans/diff`. */
export interface PlanChanges {
  readonly widens: readonly PlanChange[];
  readonly narrows: readonly PlanChange[];
  readonly other: readonly PlanChange[];
}

/** A model that can run on the server. */
export interface UsableModel {
  /** As `vendor/model`. */
  readonly model: string;
  readonly display_name: string;
  /** Tokens. */
  readonly context_window: number;
  /** Absent when it is not known. */
  readonly pricing?: {
    readonly input_per_million: number;
    readonly output_per_million: number;
    readonly currency: string;
  };
}

/** The answer of `GET /v1/models`, as far as the page shows it. */
export interface UsableModels {
  readonly data: readonly UsableModel[];
  readonly errors: readonly { readonly provider: string; readonly message: string }[];
}

/** What a request says about its plan. */
export type PlanChoice = Pick<RunRequest, "plan" | "plan_ref" | "model" | "workspace">;

/** How far the check of the text is. */
export type ReviewPhase = "checking" | "valid" | "invalid" | "unreachable";

/** Beginning of the id of a run. */
const RUN = "run_";
const TEXT = "preamp.plan";
const NAME = "preamp.plan_name";
const DRAFTS = "preamp.plan_drafts";
/** Milliseconds that the text must rest before it is checked. */
const REST_MS = 300;
/** Milliseconds until a server that did not answer is asked again. */
const RETRY_MS = 3_000;

/** The plan in the editor. */
export class PlanDraft {
  readonly #client: PreampClient;
  readonly #storage: TextStorage;
  readonly #loaded = signal("");
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round = 0;
  #choice = 0;
  #listing: Promise<void> | null = null;
  #reading: Promise<Data> | null = null;
  #is_loaded = false;
  /** Name of the plan of the server that `base` is; null for another text. */
  #base_ref: string | null = null;
  /** Whether `base` is a plan of the server that a caller may not send, so not have compared either. */
  #base_is_hidden = false;

  readonly plans: Signal<readonly NamedPlan[]> = signal([]);
  /** Whether the key is that of the person who has started the server, who chooses and saves plans. */
  readonly is_owner: Signal<boolean> = signal(false);
  /** Name of the plan that the text was loaded from, or id of its run; null for the user's own. */
  readonly name: Signal<string | null>;
  readonly text: Signal<string>;
  /** The text that was loaded or last run: what changes are compared with. */
  readonly base: Signal<string> = signal("");
  /** Model as `vendor/model`; empty for the plan's own. */
  readonly model: Signal<string> = signal("");
  /** The models to choose from; null until they are listed. */
  readonly usable: Signal<UsableModels | null> = signal(null);
  /** Folder that `${WORKSPACE}` means; empty for the server's own. */
  readonly workspace: Signal<string> = signal("");
  /** Changed texts that were left for another plan, by the plan's name; the user's own has an empty name. */
  readonly drafts: Signal<Readonly<Record<string, string>>>;
  /** Whether the text differs from the plan of that name. */
  readonly is_changed: ReadonlySignal<boolean> = computed(() => this.text.value !== this.#loaded.value);

  /** Whether the reader has written nothing: the text is a plan of the server, and no draft is kept. */
  readonly is_untouched: ReadonlySignal<boolean> = computed(() =>
    !this.is_changed.value && Object.keys(this.drafts.value).length === 0
  );

  /** Hash of the operator's plan that the open conversation keeps; null for another plan in the editor. */
  readonly #kept: Signal<string | null> = signal(null);
  /** Whether a run or conversation goes further with its plan of the server, which is then not sent. */
  readonly is_kept: ReadonlySignal<boolean> = computed(() =>
    this.#kept.value !== null && !this.is_changed.value &&
    (this.is_owner.value || this.model.value.trim() === "")
  );

  /** The JSON Schema of plans; null until it is loaded. */
  readonly schema: Signal<Data | null> = signal(null);

  readonly phase: Signal<ReviewPhase> = signal("checking");
  readonly findings: Signal<readonly Finding[]> = signal([]);
  /** Of the last valid text; null before the first one. */
  readonly explanation: Signal<Explanation | null> = signal(null);
  /** From `base` to the text; null when they are equal or one is not valid. */
  readonly changes: Signal<PlanChanges | null> = signal(null);

  constructor(client: PreampClient, storage: TextStorage) {
    this.#client = client;
    this.#storage = storage;
    const text = storage.getItem(TEXT);
    this.text = signal(text ?? "");
    this.name = signal(storage.getItem(NAME) ?? (text === null ? "default" : null));
    this.drafts = signal(JSON.parse(storage.getItem(DRAFTS) ?? "{}"));
  }

  /** Loads the list of plans and the plan of the editor; a text that the user has changed stays. */
  async load(): Promise<void> {
    const [caller] = await Promise.all([this.#client.getCaller(), this.#list()]);
    this.is_owner.value = caller.owner === true;
    this.#is_loaded = true;
    const { value: name } = this.name;
    const plan = name === null ? null : await this.#read(name).catch((error) => {
      if (error instanceof PreampApiError && error.code === "plan_invalid") return null; // the operator's
      throw error;
    });
    const own = this.text.value;
    this.#take(plan?.text ?? "", plan?.name ?? null, own === "" ? plan?.text ?? "" : own);
  }

  async #list(): Promise<void> {
    const { data } = await this.#client.listPlans();
    this.plans.value = data as unknown as NamedPlan[]; // of GET /v1/plans
  }

  /** Saves the text as a plan of the server, with the operator's rights. */
  async save(name: string): Promise<void> {
    const { value: text } = this.text;
    await this.#client.savePlan(name, text);
    await this.#list();
    if (this.text.value === text) this.#take(text, name, text);
  }

  async #read(name: string): Promise<ReadPlan | null> {
    const is_named = this.plans.value.some((plan) => plan.name === name);
    try {
      const plan = name.startsWith(RUN)
        ? { ...await this.#client.getRunPlan(name), name }
        : await this.#client.getPlan(is_named ? name : "default"); // the demo plan is not in the list
      return plan as unknown as ReadPlan; // of GET /v1/plans/{name}, or of GET /v1/runs/{id}/plan
    } catch (error) {
      if (error instanceof PreampApiError && error.status === 404) return null;
      throw error;
    }
  }

  /**
   * Takes another plan into the editor: null for the user's own. A changed text is kept as a draft before;
   * `draft` brings back the one of that plan; `keeps` says that the run of that id, or its conversation, goes
   * further. Does nothing when another plan was chosen since.
   */
  async choose(name: string | null, draft = false, keeps = false): Promise<void> {
    const choice = ++this.#choice;
    const plan = name === null ? null : await this.#read(name);
    if (choice !== this.#choice) return;
    if (name !== null && plan === null) throw new Error(`The server has no plan "${name}" any more`);
    const { value: text } = this.text;
    const key = name ?? "";
    const { [key]: kept, ...others } = this.drafts.value;
    const wanted = draft || name === null ? kept ?? text : plan!.text;
    const is_left = this.is_changed.value && text.trim() !== "" && wanted !== text;
    this.drafts.value = {
      ...others,
      ...(kept !== undefined && wanted !== kept ? { [key]: kept } : {}),
      ...(is_left ? { [this.name.value ?? ""]: text } : {}),
    };
    this.#storage.setItem(DRAFTS, JSON.stringify(this.drafts.value));
    const [base, base_ref, is_hidden] = [this.base.value, this.#base_ref, this.#base_is_hidden];
    this.#take(plan?.text ?? "", name, wanted);
    this.#kept.value = keeps && plan?.origin === "operator" ? plan.plan_hash ?? null : null;
    if (name === null && wanted === text) {
      this.base.value = base;
      this.#base_ref = base_ref;
      this.#base_is_hidden = is_hidden;
    }
  }

  /** Takes a text into the editor as the reader's own, on its own model. */
  async takeOwn(text: string): Promise<void> {
    this.model.value = "";
    await this.choose(null);
    this.edit(text);
  }

  /**
   * Takes the plan of a run that was opened, so that its conversation continues with it; does nothing when
   * the editor has that plan already. `keeps` says that it is the plan of the conversation.
   */
  async chooseRun(id: string, plan_hash: unknown, keeps: boolean): Promise<void> {
    const choice = ++this.#choice;
    const { value: text } = this.text;
    const check = text.trim() === "" ? {} : await this.#client.plans("check", this.#input);
    if (choice !== this.#choice || this.text.value !== text) return;
    const is_of_run = !this.is_changed.value && this.name.value?.startsWith(RUN) === true;
    if (check.plan_hash !== plan_hash || is_of_run) await this.choose(id, false, keeps);
  }

  /** Notes that another conversation begins: a plan of the server is then used by its name, if it has one. */
  async leaveRun(): Promise<void> {
    const { value: plan_hash } = this.#kept;
    if (plan_hash === null) return;
    this.#kept.value = null;
    const same = this.plans.value.find((plan) => plan.plan_hash === plan_hash);
    if (same && !this.is_changed.value) await this.choose(same.name);
    else this.#reviewSoon();
  }

  #take(loaded: string, name: string | null, text: string): void {
    batch(() => {
      this.#loaded.value = loaded;
      this.base.value = loaded;
      this.name.value = name;
      this.#base_ref = this.plan_ref;
      this.#base_is_hidden = false;
      this.#kept.value = null;
      this.findings.value = [];
      this.explanation.value = null;
      this.changes.value = null;
    });
    if (name === null) this.#storage.removeItem(NAME);
    else this.#storage.setItem(NAME, name);
    this.edit(text);
  }

  /** Sets the text. */
  edit(text: string): void {
    this.text.value = text;
    this.#storage.setItem(TEXT, text);
    this.#reviewSoon();
  }

  /** Sets the model; empty for the plan's own. */
  setModel(model: string): void {
    this.model.value = model;
    this.#reviewSoon();
  }

  /** Lists the models to choose from, once; again after a failure, or when there were none. */
  async loadModels(): Promise<void> {
    if (this.usable.value?.data.length) return;
    this.#listing ??= this.#client.listModels().then((answer) => {
      this.usable.value = answer as unknown as UsableModels; // of GET /v1/models
    }).finally(() => this.#listing = null);
    await this.#listing;
  }

  /** Loads the schema of plans, once; not before the page has a key for the server. */
  async loadSchema(): Promise<void> {
    if (this.schema.value !== null || !this.#is_loaded) return;
    this.#reading ??= this.#client.getPlanSchema().finally(() => this.#reading = null);
    this.schema.value = await this.#reading;
  }

  /** Sets the workspace; empty for the server's own. */
  setWorkspace(workspace: string): void {
    this.workspace.value = workspace;
    this.#reviewSoon();
  }

  /** Notes that the text has been run: later changes are compared with it. */
  ran(text: string): void {
    this.base.value = text;
    this.#base_is_hidden = this.is_kept.value && this.explanation.value === null;
    this.#base_ref = this.#text_ref;
    this.#reviewSoon();
  }

  /**
   * Returns what a request says about the plan: nothing for the server's own in a new session, the name of an
   * unchanged plan, else the text. A model of the user's choice needs the text, unless the user has started
   * the server: other callers may not choose the model of a server's plan.
   */
  choice(in_session: boolean): PlanChoice {
    const { plan, ...input } = this.#input;
    if (in_session && this.is_kept.value) return input;
    const is_demo = !this.is_changed.value && this.plan_ref === null &&
      this.name.value?.startsWith(RUN) === false;
    const is_default = plan?.trim() === "" || is_demo && !in_session;
    return plan === undefined || is_default ? input : { plan, ...input };
  }

  /** The plan as checks and runs receive it. */
  get #input(): PlanChoice & { plan?: string } {
    const [model, folder] = [this.model.value.trim(), this.workspace.value.trim()];
    const { value: is_owner } = this.is_owner;
    const chosen = {
      ...(model === "" ? {} : { model }),
      ...(is_owner && folder !== "" ? { workspace: folder } : {}),
    };
    const plan_ref = this.#text_ref;
    return plan_ref !== null && (model === "" || is_owner)
      ? { plan_ref, ...chosen }
      : { plan: this.text.value, ...chosen };
  }

  /** Name under which the server knows the text as it is; null for a changed one. */
  get #text_ref(): string | null {
    return this.is_changed.value ? null : this.plan_ref;
  }

  /** Name under which the server knows the loaded plan; null for the demo, a run's and the user's. */
  get plan_ref(): string | null {
    const { value: name } = this.name;
    return this.plans.value.some((plan) => plan.name === name) ? name : null;
  }

  /** Shows why a run was refused, if it was for its plan. */
  refuse(error: unknown): void {
    if (error instanceof PreampApiError && /^(plan|policy|module|lock)_/.test(error.code)) {
      this.#fail(error);
    }
  }

  #reviewSoon(ms = REST_MS): void {
    clearTimeout(this.#timer);
    const round = ++this.#round;
    this.phase.value = "checking";
    this.#timer = setTimeout(() => this.#review(() => round === this.#round), ms);
  }

  async #review(isCurrent: () => boolean): Promise<void> {
    const { value: text } = this.text;
    const { value: base } = this.base;
    // a plan of the server may say what only its operator may: it is compared by its name
    const named = (plan: string, ref: string | null) => ref === null ? plan : { plan_ref: ref };
    const from = named(base, this.#base_ref);
    const to = named(text, this.#text_ref);
    const input = this.#input;
    const accept = () =>
      batch(() => {
        this.phase.value = "valid";
        this.findings.value = [];
        this.explanation.value = null;
        this.changes.value = null;
      });
    if (input.plan?.trim() === "") return accept();
    const acceptKept = () => { // the text would be refused, and is not sent
      this.#base_is_hidden = true;
      accept();
    };
    try {
      const { ok, errors, warnings } = await this.#client.plans("check", input) as unknown as Check;
      if (!isCurrent()) return;
      if (!ok && this.is_kept.value) return acceptKept();
      if (!ok) return this.#refused([...this.#found("error", errors), ...this.#found("warning", warnings)]);
      const compares = base !== text && base.trim() !== "" && !this.#base_is_hidden;
      const [explanation, changes] = await Promise.all([
        this.#client.plans("explain", input),
        compares ? this.#client.plans("diff", { from, to }).catch(() => null) : null, // the base may be invalid
      ]);
      if (!isCurrent()) return;
      batch(() => {
        this.phase.value = "valid";
        this.findings.value = this.#found("warning", warnings);
        this.explanation.value = explanation as unknown as Explanation; // of POST /v1/plans/explain
        this.changes.value = changes as unknown as PlanChanges | null; // of POST /v1/plans/diff
      });
    } catch (error) {
      if (!isCurrent()) return;
      if (error instanceof PreampApiError && error.status < 500 && error.status !== 401) {
        if (this.is_kept.value) acceptKept();
        else this.#fail(error);
      } else {
        this.#reviewSoon(RETRY_MS);
        this.phase.value = "unreachable";
      }
    }
  }

  #fail(error: PreampApiError): void {
    this.#refused(
      error.details.length > 0
        ? this.#found("error", error.details)
        : [{ level: "error", path: "", message: sentenceOf(error) }],
    );
  }

  /** Returns findings; those of a named plan have lines of its file, and get those of the shown text. */
  #found(level: Finding["level"], details: readonly Data[]): Finding[] {
    const { value: text } = this.text;
    const syntax = this.#input.plan_ref === undefined ? null : readSyntax(text);
    const placed = (path: string) => {
      const at = syntax && offsetOfPath(syntax, path);
      return at === null ? {} : { line: text.slice(0, at).split("\n").length };
    };
    return details.map(({ line, column, path = "", ...detail }) =>
      ({ ...detail, ...(syntax ? placed(`${path}`) : { line, column }), path, level }) as Finding
    );
  }

  #refused(findings: readonly Finding[]): void {
    batch(() => {
      this.phase.value = "invalid";
      this.findings.value = findings;
      this.changes.value = null;
    });
  }
}

/** A plan of the server, or of a run. */
interface ReadPlan {
  readonly name: string;
  readonly text: string;
  readonly plan_hash?: string;
  /** Of a run's: whose rights the plan had. */
  readonly origin?: "operator" | "caller";
}

/** The answer of `POST /v1/plans/check`. */
interface Check {
  readonly ok: boolean;
  readonly errors: readonly Data[];
  readonly warnings: readonly Data[];
}
