/**
 * Packages that the files of `app` may import, and those that these packages import. The functions download
 * them if `deno install` has not done so; what they export is not used here.
 */
export declare const PACKAGES: Readonly<Record<string, () => Promise<unknown>>>;
