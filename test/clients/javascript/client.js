'use strict';

// Goes through the list of checks with @opensearch-project/opensearch. The test tells it the servers, and reads a line a check.

const assert = require('node:assert/strict');
const { setTimeout: sleep } = require('node:timers/promises');
const { Client, errors } = require('@opensearch-project/opensearch');

const { WLMSERVER_URL: node, WLMSERVER_USERS_URL: usersNode } = process.env;
const SEARCH = 'indices:data/read/search';
const FOREVER = { ext: { stub: { query_time: '10m' } } };

const client = new Client({ node, requestTimeout: 60_000 });

// patiently calls until it is not refused, and each time waits as long as the refusal says.
async function patiently(call, tries = 10) {
  for (let waited = 0; ; waited++) {
    try {
      return { ...(await call()), waited };
    } catch (e) {
      if (e.statusCode !== 429 || waited === tries) throw e;
      await sleep(1000 * Number(e.headers['retry-after']));
    }
  }
}

// rejects checks that a call fails with the client's error for this status, and gives that error.
async function rejects(status, type, call) {
  const e = await call().then(
    ({ body }) => assert.fail(`no error, but ${JSON.stringify(body)}`),
    (e) => e
  );
  assert(e instanceof errors.ResponseError, `${e}`);
  assert.equal(e.statusCode, status, `${e}`);
  if (type) assert.equal(e.body.error.type, type, `${e}`);
  return e;
}

const raw = (method, path, body, options) => client.transport.request({ method, path, body }, options);

async function createGroup(name, blocks) {
  const group = { name, resiliency_mode: 'enforced', resource_limits: { cpu: 0.1 }, ...blocks };
  return (await raw('PUT', '/_wlm/workload_group', group)).body._id;
}

const searchIn = (group, body = {}, options = {}) =>
  client.search({ index: 'books', body }, { headers: { workloadGroupId: group }, ...options });

// inBackground starts a call and keeps its end for later.
const inBackground = (call) => {
  const end = call();
  end.catch(() => {}); // looked at by whoever has started it
  return end;
};

// searches gives the searches that run or wait, by their state.
async function searches() {
  const { body } = await client.tasks.list({ actions: SEARCH, detailed: true });
  const found = {};
  for (const { tasks } of Object.values(body.nodes)) {
    for (const task of Object.values(tasks)) {
      if (task.status?.state) found[task.status.state] = `${task.node}:${task.id}`;
    }
  }
  return found;
}

async function waitFor(...states) {
  for (const deadline = Date.now() + 30_000; ; await sleep(20)) {
    const found = await searches();
    if (Object.keys(found).sort().join() === states.sort().join()) return found;
    assert(Date.now() < deadline, `there is ${JSON.stringify(found)}, not ${states}`);
  }
}

// One search that runs and one that is parked, which the checks of tasks look at and end.
const tasks = {};
const startTask = () => inBackground(() => searchIn(tasks.group, FOREVER, { opaqueId: 'report-7' }));

async function cancel(state) {
  const { body } = await client.tasks.cancel({ task_id: tasks.ids[state] });
  assert.equal(Object.keys(body.nodes).length, 1, JSON.stringify(body));
  assert.equal(body.node_failures, undefined);
  const e = await rejects(500, null, () => tasks.calls[state]);
  assert.equal(e.body.error.root_cause[0].type, 'task_cancelled_exception');
}

const checks = {
  async product() {
    const { body } = await client.info();
    assert.equal(body.version.distribution, 'opensearch');
    assert(body.version.number);
  },

  async ping() {
    assert.equal((await client.ping()).body, true);
  },

  async groups() {
    const path = '/_wlm/workload_group';
    const id = await createGroup('crud', { throttling: { attribute: 'group', node_limit: 3 } });
    const one = (await raw('GET', `${path}/crud`)).body.workload_groups;
    assert.deepEqual(one.map((g) => [g._id, g.throttling.node_limit]), [[id, 3]]);
    const changed = (await raw('PUT', `${path}/crud`, { throttling: { node_limit: 5 }, queue: { size_per_bucket: 7 } })).body;
    assert.deepEqual(changed.throttling, { attribute: 'group', node_limit: 5 });
    assert((await raw('GET', path)).body.workload_groups.some((g) => g.name === 'crud'));
    assert.deepEqual((await raw('DELETE', `${path}/crud`)).body, { acknowledged: true });
    await rejects(404, 'resource_not_found_exception', () => raw('GET', `${path}/crud`));
  },

  async settings() {
    const key = 'wlm.workload_group.mode';
    const put = (value) => client.cluster.putSettings({ body: { transient: { [key]: value } } });
    const get = async () => (await client.cluster.getSettings({ flat_settings: true })).body.transient;
    assert.equal((await put('enabled')).body.acknowledged, true);
    assert.deepEqual(await get(), { [key]: 'enabled' });
    await put(null);
    assert.deepEqual(await get(), {});
  },

  async bulk() {
    await client.indices.create({ index: 'books', body: { settings: { number_of_shards: 2, number_of_replicas: 0 } } });
    const datasource = Array.from({ length: 30 }, (_, i) => ({ id: String(i), title: `book ${i}` }));
    const made = await client.helpers.bulk({
      datasource,
      refreshOnCompletion: true,
      onDocument: (doc) => ({ index: { _index: 'books', _id: doc.id } }),
    });
    assert.deepEqual([made.total, made.successful, made.failed], [30, 30, 0]);
    const again = await client.bulk({ body: [{ create: { _index: 'books', _id: '1' } }, { title: 'again' }] });
    assert.equal(again.body.errors, true);
    assert.equal(again.body.items[0].create.status, 409);
  },

  async search() {
    const { body } = await client.search({ index: 'books', body: { query: { match_all: {} }, size: 5 } });
    assert.deepEqual(body.hits.total, { value: 30, relation: 'eq' });
    assert.equal(body.hits.hits.length, 5);
    assert(body.hits.hits[0]._source.title);
  },

  async count() {
    const { body } = await client.count({ index: 'books', body: { query: { term: { title: 'x' } } } });
    assert.equal(body.count, 30);
  },

  async msearch() {
    const lines = [{ index: 'books' }, { size: 1 }, { index: 'nosuch' }, {}, {}, { query: { match_all: {} } }];
    const { responses } = (await client.msearch({ index: 'books', body: lines })).body;
    assert.deepEqual(responses.map((r) => r.status), [200, 404, 200]);
    assert.equal(responses[1].error.type, 'index_not_found_exception');
  },

  async scroll() {
    const found = new Set();
    for await (const page of client.helpers.scrollSearch({ index: 'books', size: 7, scroll: '1m', body: {} })) {
      for (const hit of page.body.hits.hits) found.add(hit._id);
    }
    assert.equal(found.size, 30);
  },

  async 'tasks list'() {
    tasks.group = await createGroup('tasks', {
      throttling: { attribute: 'group', node_limit: 1 },
      queue: { size_per_bucket: 1 },
    });
    tasks.calls = { running: startTask() };
    await waitFor('running');
    tasks.calls.waiting = startTask();
    tasks.ids = await waitFor('running', 'waiting');
    const { body } = await client.tasks.list({ actions: SEARCH, detailed: true });
    const [listed] = Object.values(body.nodes);
    for (const key of ['name', 'transport_address', 'host', 'ip', 'roles', 'attributes']) assert(key in listed, key);
    assert.equal(Object.keys(listed.tasks).length, 2);
    for (const task of Object.values(listed.tasks)) {
      assert.equal(task.cancellable, true);
      assert.equal(task.headers['X-Opaque-Id'], 'report-7');
      assert(task.description.includes('books') && task.running_time_in_nanos > 0);
    }
    assert.equal(listed.tasks[tasks.ids.waiting].status.position, 1);
  },

  async 'tasks get'() {
    for (const [state, id] of Object.entries(tasks.ids)) {
      const { body } = await client.tasks.get({ task_id: id });
      assert.deepEqual([body.completed, body.task.action, body.task.status.state], [false, SEARCH, state]);
    }
    await rejects(404, 'resource_not_found_exception', () => client.tasks.get({ task_id: 'nosuch:1' }));
  },

  'tasks cancel parked': () => cancel('waiting'),
  'tasks cancel running': () => cancel('running'),

  async 'error 400'() {
    const e = await rejects(400, 'parsing_exception', () => client.search({ body: { query: { nosuch: {} } } }));
    assert(e.body.error.reason.includes('nosuch'));
  },

  async 'error 401'() {
    const as = (password) => new Client({ node: usersNode, auth: { username: 'ann', password } });
    await rejects(401, 'security_exception', () => as('wrong').info());
    assert.equal((await as('secret').ping()).body, true);
  },

  async 'error 403'() {
    const bob = new Client({ node: usersNode, auth: { username: 'bob', password: 'secret' } });
    const body = { transient: { 'wlm.workload_group.mode': 'enabled' } };
    await rejects(403, 'security_exception', () => bob.cluster.putSettings({ body }));
  },

  async 'error 404'() {
    await rejects(404, 'index_not_found_exception', () => client.search({ index: 'nosuch' }));
  },

  async 'error 405'() {
    const e = await rejects(405, null, () => raw('DELETE', '/_wlm/stats'));
    assert(e.body.error.includes('is not allowed for uri'), e.body.error);
  },

  async 'error 429'() {
    const group = await createGroup('full', { throttling: { attribute: 'group', node_limit: 1 } });
    const running = inBackground(() => searchIn(group, FOREVER));
    const found = await waitFor('running');
    await rejects(429, 'rejected_execution_exception', () => searchIn(group));
    await client.tasks.cancel({ task_id: found.running });
    await rejects(500, null, () => running);
  },

  async 'error 500'() {
    const body = { ext: { stub: { fail_shards: 2 } } };
    const e = await rejects(500, 'search_phase_execution_exception', () => client.search({ index: 'books', body }));
    assert.equal(e.body.error.failed_shards.length, 2);
  },

  async 'retry after'() {
    const group = await createGroup('patience', { throttling: { attribute: 'group', node_limit: 1 } });
    const running = inBackground(() => searchIn(group, { ext: { stub: { query_time: '3s' } } }));
    await waitFor('running');
    const { body, waited } = await patiently(() => searchIn(group));
    assert.equal(body.hits.total.value, 30);
    assert(waited > 0);
    assert.equal((await running).body.timed_out, false);
  },

  async gzip() {
    const squeezed = new Client({ node, compression: 'gzip', suggestCompression: true });
    const body = { query: { terms: { title: Array(200).fill('many words') } }, size: 30 };
    const answer = await squeezed.search({ index: 'books', body }, { opaqueId: 'gzip' });
    assert.equal(answer.body.hits.hits.length, 30);
  },

  async 'keep-alive'() {
    const c = new Client({ node });
    const mark = { opaqueId: 'keep-alive' };
    await rejects(400, null, () => c.search({ body: { query: { nosuch: {} } } }, mark));
    await rejects(404, null, () => c.search({ index: 'nosuch' }, mark));
    await rejects(405, null, () => c.transport.request({ method: 'DELETE', path: '/_wlm/stats' }, mark));
    assert.equal((await c.ping({}, mark)).body, true);
    assert.equal((await c.exists({ index: 'books', id: 'nosuch' }, mark)).body, false);
    assert.equal((await c.count({ index: 'books' }, mark)).body.count, 30);
  },
};

(async () => {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok ${name}`);
    } catch (e) {
      console.log(`not ok ${name}: ${String(e).replace(/\s+/g, ' ')}`);
    }
  }
  process.exit(); // connections that are kept alive would hold it
})();
