/** Data types of the loader and the interface of its bundler. Types only. */
import type { Lock } from "../plan/lock.ts";
import type { Origin, Policy } from "../policy/policy.ts";
import type { Declared } from "./bundler/static_manifest.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { Source } from "../sdk/plan.ts";

/** Parts of a policy that apply to the loader. */
export type LoaderPolicy = Pick<Policy, "modules"> & {
  limits: Pick<
    Policy["limits"],
    "max_module_bytes" | "max_graph_bytes" | "max_graph_files" | "max_redirects" | "fetch_timeout_s"
  >;
  isolation: Pick<Policy["isolation"], "load_timeout_s">;
};

/** A module of a plan, or only its source. */
export interface LoadSpec {
  module?: string;
  source: Source;
  integrity?: string;
  isolation?: "inline" | "process";
}

/** Caller, policy and pins of a load. */
export interface LoadContext {
  /** Origin of the plan, which decides what it may load. */
  origin: Origin;
  /** Namespace of caches and linked modules; namespaces share nothing. */
  namespace: string;
  /** Policy of the caller. */
  policy: LoaderPolicy;
  /** Lock of the plan. The modules in it must have exactly the locked bytes. */
  lock?: Lock;
  /**
   * Whether every module must be pinned by the lock or by `integrity`. Default: the policy's
   * `modules.frozen`.
   */
  frozen?: boolean;
  /** URL of the plan file: messages display file names relative to it. */
  base_url?: string;
  /** Aborts the wait of this caller; shared work continues for other callers. */
  signal?: AbortSignal;
}

/** One file of a module's graph. */
export interface GraphFile {
  /** URL after redirects. */
  readonly url: string;
  /** Lower-case hex SHA-256 of the bytes. */
  readonly sha256: string;
  readonly bytes: number;
}

/** An import that the bundle replaces by a function that throws. */
export interface RefusedImport {
  /** Specifier; null if it is computed. */
  readonly specifier: string | null;
  /** URL of the author's file. Line and column count from 1. */
  readonly url: string;
  readonly line: number;
  readonly column: number;
}

/** Files, digest and exports of a module, determined without executing it. */
export interface ModuleGraph {
  /** URL in the plan. */
  readonly requested: string;
  /** URL of the entry file, after redirects. */
  readonly url: string;
  /** Digest of the graph's manifest, which `integrity` in a plan pins (src/docs/plan.md). */
  readonly integrity: string;
  /** Files sorted by their path in the manifest, including the entry. */
  readonly files: readonly GraphFile[];
  /** Names of the entry's exports. */
  readonly exports: readonly string[];
  /** Parts of the SDK that it uses, such as `preamp` or `zod`; the host provides them. */
  readonly uses: readonly string[];
  readonly imports_refused: readonly RefusedImport[];
}

/** A module as one file. */
export interface ModuleBundle extends ModuleGraph {
  /** One ES module without imports, with an inline source map. */
  readonly code: string;
  /** Its declaration (`export const module`), read without executing it; null if it cannot be read. */
  readonly declared: Declared | null;
  /** Requests for its files, repeated ahead when the module is loaded again. */
  readonly requests: readonly GraphRequest[];
}

/** One requested URL of a graph. */
export interface GraphRequest {
  /** URL before redirects. */
  readonly url: string;
  /** URL of the importing file; absent for the entry. */
  readonly from?: string;
}

/** A module that is linked in this process. */
export interface LoadedModule extends ModuleGraph {
  /** Its namespace object. */
  readonly module: JsonObject;
  readonly isolation: "inline";
  /**
   * Returns where in the author's files an error was thrown (`error.at`): `<url>:<line>:<column>`, or
   * undefined.
   */
  placeOf(error: unknown): string | undefined;
}

export interface FetchedFile {
  readonly url: string;
  readonly sha256: string;
  readonly bytes: Uint8Array;
  /** Seconds that the server allows the file to be cached; undefined if the server sent no `max-age`. */
  readonly max_age_s?: number;
  /** Modification time of a local file. */
  readonly mtime_ms?: number;
}

export type BundlerFile = Pick<FetchedFile, "url" | "sha256" | "bytes">;

/** Input of the bundler, which has no other access to files. */
export interface BundleRequest {
  /** URL of the entry file. */
  readonly entry: string;
  readonly files: readonly BundlerFile[];
  /** Maps requested URLs to URLs after redirects. */
  readonly redirects: Readonly<Record<string, string>>;
  /** Maps URLs that could not be fetched to the reason. */
  readonly failed: Readonly<Record<string, string>>;
  /** URL of the host that serves npm and JSR packages as ES modules, or `none`. */
  readonly esm_host: string;
  /** Present for the script of a web page, which is minified. Absent for a module. */
  readonly page?: {
    /** Maps bare specifiers to URLs of files. */
    readonly imports: Readonly<Record<string, string>>;
    /** Package of the functions that JSX calls. */
    readonly jsx: string;
  };
}

/** An error in a file. */
export interface BundleProblem {
  readonly message: string;
  readonly hint?: string;
  /** URL of the author's file, if known. */
  readonly url?: string;
  readonly line?: number;
  readonly column?: number;
  /** URL in {@link BundleRequest.failed}, if that is the cause. */
  readonly failed_url?: string;
}

/** Answer of the bundler: a bundle, missing files, or errors. */
export type BundleAnswer =
  | BundledCode
  | Readonly<
    | { kind: "missing"; urls: readonly { url: string; from: string }[] }
    | { kind: "problems"; problems: readonly BundleProblem[] }
  >;

/** A bundle, as the bundler knows it. */
export interface BundledCode
  extends Pick<ModuleBundle, "code" | "exports" | "uses" | "imports_refused" | "declared"> {
  readonly kind: "bundle";
  /** URLs of the files that the bundle contains. */
  readonly inputs: readonly string[];
  /** Files from data: URLs, under shortened URLs. */
  readonly inline: readonly GraphFile[];
}

/** Options of {@link Bundler.imports}. */
export interface ImportsOptions {
  /** Most URLs to return. */
  readonly max: number;
  /** As in {@link BundleRequest}. */
  readonly esm_host: string;
}

export interface BundlerClient {
  /** Name of the module in messages. */
  readonly name: string;
  /** Owner of the module; waiting owners are served in turn. */
  readonly owner: string;
  /**
   * Whether an operator's plan loads the module from a source that the operator trusts like the program
   * itself.
   */
  readonly trusted: boolean;
}

/** Bundles files. All work whose duration a module's author controls happens in it. */
export interface Bundler {
  /**
   * Bundles the files of the request.
   * @throws {PreampError} `module_invalid` if the bundler fails or times out, then the same bytes are refused
   * for a while; `module_load_failed` if this host cannot bundle.
   */
  bundle(request: BundleRequest, client: BundlerClient): Promise<BundleAnswer>;
  /**
   * Resolves to the distinct URLs that a file appears to import.
   * @throws {PreampError} As {@link Bundler.bundle}.
   */
  imports(file: BundlerFile, options: ImportsOptions, client: BundlerClient): Promise<readonly string[]>;
  /** Starts the bundler ahead, while files are fetched. */
  prepare?(): void;
  close(): Promise<void>;
}
