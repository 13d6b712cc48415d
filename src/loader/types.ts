/** The shapes that pass between the parts of the loader, and what it is asked and answers. Types only. */
import type { Lock } from "../plan/lock.ts";
import type { Origin } from "../policy/plan_trust.ts";
import type { Declared } from "./bundler/static_manifest.ts";
import type { Policy } from "../policy/policy.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { ModuleSpec, Source } from "../sdk/plan.ts";

/** What of a policy the loader obeys. */
export type LoaderPolicy = Pick<Policy, "modules"> & {
  limits: Pick<
    Policy["limits"],
    "max_module_bytes" | "max_graph_bytes" | "max_graph_files" | "max_redirects" | "fetch_timeout_s"
  >;
  isolation: Pick<Policy["isolation"], "load_timeout_s">;
};

/** A module of a plan, or just where it comes from. */
export type LoadSpec = Pick<ModuleSpec, "module" | "source" | "integrity" | "path"> | {
  module?: string;
  source: Source;
  integrity?: string;
  path?: string;
};

/** Who asks, and what is known of the bytes. */
export interface LoadContext {
  /** Whose plan it is. */
  origin: Origin;
  /** Whose caches are used: nobody reaches another's. */
  namespace: string;
  /** The policy that holds for whoever asks. */
  policy: LoaderPolicy;
  /** The plan's lock. A module that is in it must have these very bytes. */
  lock?: Lock;
  /** Whether every module must be pinned by the lock or by `integrity`. Default: the policy's `modules.frozen`. */
  frozen?: boolean;
  /** Folder of the plan file: file names in messages are told relative to it. */
  base_url?: string;
  /** Ends the wait; what was begun for others goes on. */
  signal?: AbortSignal;
}

/** One file that a module is made of. */
export interface GraphFile {
  /** After redirects. */
  readonly url: string;
  /** Lower-case hex SHA-256 of the bytes. */
  readonly sha256: string;
  readonly bytes: number;
}

/** An import that was made to throw. */
export interface RefusedImport {
  /** What was imported; null when it is computed. */
  readonly specifier: string | null;
  /** Author's file, from 1. */
  readonly url: string;
  readonly line: number;
  readonly column: number;
}

/** What a module is made of; nothing of it was executed. */
export interface ModuleGraph {
  /** Where the plan says it is. */
  readonly requested: string;
  /** Where its entry file is, after redirects. */
  readonly url: string;
  /** Digest of the manifest (plan.md, `integrity`). */
  readonly integrity: string;
  /** Sorted by path in the manifest; the entry is one of them. */
  readonly files: readonly GraphFile[];
  /** Names the entry exports. */
  readonly exports: readonly string[];
  /** Which of `preamp`, `preamp/loop`, `preamp/testing`, `zod` it reads from the host. */
  readonly uses: readonly string[];
  readonly imports_refused: readonly RefusedImport[];
}

/** A module as one text. */
export interface ModuleBundle extends ModuleGraph {
  /** One ES module with its source map inline; nothing in it imports. */
  readonly code: string;
  /** What it says of itself (`export const module`), read without running it; null when that cannot be read. */
  readonly declared: Declared | null;
  /** What was asked for to get its files: a later version is likely to be made of the same. */
  readonly requests: readonly GraphRequest[];
}

/** One URL of a graph as it was asked for. */
export interface GraphRequest {
  /** Before redirects. */
  readonly url: string;
  /** The file that imports it; absent for the entry. */
  readonly from?: string;
}

/** A module that runs in this process. */
export interface LoadedModule extends ModuleGraph {
  /** Its namespace object. */
  readonly module: JsonObject;
  readonly isolation: "inline";
  /** Returns `<url>:<line>:<column>` of the author's file that an error was thrown at (`error.at`), or undefined. */
  placeOf(error: unknown): string | undefined;
}

/** Bytes as they were fetched. */
export interface FetchedFile {
  readonly url: string;
  readonly sha256: string;
  readonly bytes: Uint8Array;
  /** Seconds that an answer may be used again, as the server says; undefined when it says nothing. */
  readonly max_age_s?: number;
  /** Modification time of a file of this machine. */
  readonly mtime_ms?: number;
}

/** A file as the bundler is given it. */
export type BundlerFile = Pick<FetchedFile, "url" | "sha256" | "bytes">;

/** What the bundler is given: bytes that are there, and nothing else. */
export interface BundleRequest {
  /** URL of the entry file. */
  readonly entry: string;
  readonly files: readonly BundlerFile[];
  /** Requested URL → URL after redirects. */
  readonly redirects: Readonly<Record<string, string>>;
  /** URLs that cannot be had, and why. */
  readonly failed: Readonly<Record<string, string>>;
  /** URL of the host that serves npm and JSR packages as ES modules, or `none`. */
  readonly esm_host: string;
}

/** Something that is wrong in a file. */
export interface BundleProblem {
  readonly message: string;
  readonly hint?: string;
  /** The author's file; absent when no place is known. */
  readonly url?: string;
  readonly line?: number;
  readonly column?: number;
  /** The URL of {@link BundleRequest.failed} that it is about. */
  readonly failed_url?: string;
}

/** What the bundler answers: a text, what it still needs, or why there is none. */
export type BundleAnswer =
  | {
    readonly kind: "bundle";
    readonly code: string;
    /** Files of the request that went in. */
    readonly inputs: readonly string[];
    /** Code in data: URLs that went in, under short URLs. */
    readonly inline: readonly GraphFile[];
    readonly exports: readonly string[];
    readonly uses: readonly string[];
    readonly imports_refused: readonly RefusedImport[];
    readonly declared: Declared | null;
  }
  | { readonly kind: "missing"; readonly urls: readonly { url: string; from: string }[] }
  | { readonly kind: "problems"; readonly problems: readonly BundleProblem[] };

/** How the imports of a file are found. */
export interface ImportsOptions {
  /** The most URLs that are wanted. */
  readonly max: number;
  /** As in {@link BundleRequest}. */
  readonly esm_host: string;
}

/** For whom the bundler works. */
export interface BundlerClient {
  /** What messages call the module. */
  readonly name: string;
  /** Whose module it is: owners that wait are served in turn. */
  readonly owner: string;
  /** Whether the operator trusts the module like its own code, in a plan of its own. */
  readonly trusted: boolean;
}

/** Makes one text of many files. Everything that takes time in proportion to a stranger's source happens in it. */
export interface Bundler {
  /**
   * Bundles, without looking anywhere but into the request.
   * @throws {PreampError} `module_invalid` when the bundler fails on the source or takes too long: the same bytes are then
   * refused for a while; `module_load_failed` when this host cannot bundle.
   */
  bundle(request: BundleRequest, client: BundlerClient): Promise<BundleAnswer>;
  /**
   * Resolves to the URLs that a file seems to import, each once.
   * @throws {PreampError} As {@link Bundler.bundle}.
   */
  imports(file: BundlerFile, options: ImportsOptions, client: BundlerClient): Promise<readonly string[]>;
  /** Begins to start, so that it is ready when the files are there. */
  prepare?(): void;
  close(): Promise<void>;
}
