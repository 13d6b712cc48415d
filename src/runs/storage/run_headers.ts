/**
 * The headers of a request that its plan names as `${X-Run-NAME}`. Another process may continue the run: with
 * `PREAMP_SECRET_KEY` the values are stored with the run's input until it ends, encrypted (AES-GCM); without
 * it, their names are, and such a run cannot continue there.
 */
import type { CompiledPlan } from "../../plan/compile.ts";
import { isRequestHeader } from "../../plan/env.ts";
import { PreampError } from "../../sdk/errors.ts";

/** Headers of a run as stored. */
export interface StoredHeaders {
  /** Those that the request had. */
  readonly names: readonly string[];
  /** Their values: initialisation vector and ciphertext in Base64. Absent: they are not stored. */
  readonly sealed?: string;
}

/** Returns the value of a header; undefined if the request had none. */
type Headers = (name: string) => string | undefined;

const IV_BYTES = 12;

/** Stores and reads the headers of runs. */
export class RunHeaders {
  readonly #key: Promise<CryptoKey> | null;

  /** @param secret `PREAMP_SECRET_KEY`, the same for all servers. Undefined: values are not stored. */
  constructor(secret: string | undefined) {
    this.#key = secret === undefined ? null : keyOf(secret);
    this.#key?.catch(() => {}); // `store` reports it
  }

  /** Resolves to the headers that a plan names, to store them with a run; undefined if it names none. */
  async store(
    run_id: string,
    { env }: Pick<CompiledPlan, "env">,
    headers: Headers | undefined,
  ): Promise<StoredHeaders | undefined> {
    if (!headers) return undefined;
    const values: Record<string, string> = {};
    for (const { name } of env) {
      const value = isRequestHeader(name) ? headers(name) : undefined;
      if (value !== undefined) values[name] = value;
    }
    const names = Object.keys(values);
    if (names.length === 0) return undefined;
    if (!this.#key) return { names };
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const text = new TextEncoder().encode(JSON.stringify(values));
    const sealed = new Uint8Array(await crypto.subtle.encrypt(algorithm(iv, run_id), await this.#key, text));
    return { names, sealed: `${iv.toBase64()}.${sealed.toBase64()}` };
  }

  /**
   * Resolves to the headers of a run that this process continues. The function throws `interrupted` for a
   * header whose value this process does not have.
   */
  async read(run_id: string, stored: StoredHeaders | undefined): Promise<Headers> {
    if (!stored) return () => undefined;
    const values = await this.#open(run_id, stored.sealed);
    return (name) => {
      if (values !== null || !stored.names.includes(name)) return values?.[name];
      const fact = stored.sealed === undefined
        ? "it was not stored, because the server had no PREAMP_SECRET_KEY"
        : "this server has not the PREAMP_SECRET_KEY that it was stored with";
      throw new PreampError(
        "interrupted",
        `Cannot continue the run in another process: its plan uses the header ${name} of its request, and ${fact}`,
      );
    };
  }

  async #open(run_id: string, sealed: string | undefined): Promise<Record<string, string> | null> {
    if (sealed === undefined || !this.#key) return null;
    const [iv = "", text = ""] = sealed.split(".");
    try {
      const name = algorithm(Uint8Array.fromBase64(iv), run_id);
      const plain = await crypto.subtle.decrypt(name, await this.#key, Uint8Array.fromBase64(text));
      return JSON.parse(new TextDecoder().decode(plain));
    } catch {
      return null; // stored with another key
    }
  }
}

/** The run's id is authenticated too: values cannot be moved to another run. */
function algorithm(iv: Uint8Array<ArrayBuffer>, run_id: string): AesGcmParams {
  return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(run_id) };
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = new TextEncoder().encode(secret);
  const material = await crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveKey"]);
  const info = new TextEncoder().encode("preamp run headers");
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info };
  return await crypto.subtle.deriveKey(hkdf, material, { name: "AES-GCM", length: 256 }, false, [
    "encrypt",
    "decrypt",
  ]);
}
