/** Where the lock of a plan file is. Apart from reading it: plans are found without. */

/** Name of the lock file beside a plan file. */
export const LOCK_FILE = "plan.lock.json";
