"""Starts the third-party fake `fakepve` with the state that tests/tests/fakepve.rs reads.

    python start.py CERTIFICATE KEY

Both are PEM files; the certificate is for 127.0.0.1 and is its own CA. One line of JSON on standard output says where
the fake listens and with which API token. It ends when its standard input does.
"""

import asyncio
import json
import re
import ssl
import sys
import uuid

import aiohttp
import fakepve
import fakepve.schema

TOKEN_ID = 'root@pam!pvegate'
GIB = 1024 ** 3

# What the fake remembers of what it is told goes in by its API, as a user of PVE would bring it there.
STATE = (
    ('POST', '/storage', {'storage': 'nas', 'type': 'dir', 'path': '/srv/nas', 'shared': 1,
                          'content': 'iso,vztmpl,backup,images'}),
    ('POST', '/pools', {'poolid': 'shop', 'comment': 'web shop'}),
    ('PUT', '/pools', {'poolid': 'shop', 'vms': '100,200', 'storage': 'nas'}),
    ('POST', '/nodes/pve1/qemu/100/snapshot', {'snapname': 'before-upgrade', 'description': 'Before the upgrade'}),
    ('POST', '/nodes/pve1/lxc/200/snapshot', {'snapname': 'clean'}),
    ('PUT', '/nodes/pve1/qemu/100/config', {'cores': 4}),
    ('POST', '/nodes/pve2/qemu/102/template', {}),
    ('POST', '/nodes/pve2/qemu/101/status/start', {}),
    ('POST', '/nodes/pve2/lxc/201/status/start', {}),
    ('POST', '/cluster/firewall/groups', {'group': 'web'}),
    ('POST', '/cluster/firewall/groups/web', {'type': 'in', 'action': 'ACCEPT', 'macro': 'HTTPS', 'enable': 1}),
    ('POST', '/cluster/firewall/aliases', {'name': 'office', 'cidr': '198.51.100.0/24'}),
    ('POST', '/cluster/firewall/ipset', {'name': 'management'}),
    ('POST', '/cluster/firewall/ipset/management', {'cidr': '198.51.100.7', 'comment': 'jump host'}),
    ('POST', '/cluster/firewall/rules', {'type': 'in', 'action': 'DROP', 'source': '203.0.113.0/24', 'enable': 1}),
    ('POST', '/nodes/pve1/firewall/rules', {'type': 'in', 'action': 'ACCEPT', 'macro': 'SSH', 'enable': 1}),
) + tuple(
    (method, guest + path, data)
    for guest in ('/nodes/pve1/qemu/100/firewall', '/nodes/pve1/lxc/200/firewall')
    for method, path, data in (
        ('PUT', '/options', {'enable': 1, 'policy_in': 'DROP'}),
        ('POST', '/aliases', {'name': 'db', 'cidr': '192.0.2.20'}),
        ('POST', '/ipset', {'name': 'trusted'}),
        ('POST', '/ipset/trusted', {'cidr': '192.0.2.0/25'}),
        ('POST', '/rules', {'type': 'in', 'action': 'ACCEPT', 'proto': 'tcp', 'dport': '443', 'enable': 1}),
    )
)


def cluster(secret):
    """Two nodes that are up and one that is not, with guests of both kinds."""
    pve = fakepve.FakePve(host='127.0.0.1', port=0)
    pve.version, pve.release_version = '9.2.1', '9.2'
    # Nobody is granted anything, so everyone may do everything.
    pve.apitokens[TOKEN_ID] = secret
    web = pve.add_vm(100, 'web', node='pve1', status='running', config={
        'memory': 2048, 'cores': 2, 'tags': 'prod;web', 'agent': '1', 'scsi0': 'local-lvm:vm-100-disk-0,size=32G',
        'net0': 'virtio=BC:24:11:00:00:01,bridge=vmbr0'})
    web.agent = {'get-host-name': {'host-name': 'web.example.test'}}
    pve.add_vm(101, 'db', node='pve2', lock='backup', config={
        'lock': 'backup', 'memory': 4096, 'scsi0': 'local-lvm:vm-101-disk-0,size=64G'})
    pve.add_vm(102, 'golden', node='pve2', config={'scsi0': 'local-lvm:vm-102-disk-0,size=8G'})
    pve.add_ct(200, 'cache', node='pve1', status='running', config={'tags': 'prod', 'net0': 'name=eth0,bridge=vmbr0'})
    pve.add_ct(201, 'build', node='pve2')
    pve.add_node('pve3', online=False)
    pve.add_ceph_storage()
    pve.store_file('local', 'installer.iso', GIB)
    return pve


async def fill(pve, secret, certificate):
    """Sends STATE; what is not taken ends the program."""
    trust = ssl.create_default_context(cafile=certificate)
    login = {'Authorization': 'PVEAPIToken={0}={1}'.format(TOKEN_ID, secret)}
    async with aiohttp.ClientSession(headers=login, connector=aiohttp.TCPConnector(ssl=trust)) as session:
        for method, path, data in STATE:
            async with session.request(method, pve.url + '/api2/json' + path, data=data) as answer:
                if answer.status != 200:
                    raise SystemExit('{0} {1}: {2} {3}'.format(method, path, answer.status, await answer.text()))
    pve.store_file('nas', 'vzdump-qemu-100-2026_11_29-02_00_00.vma.zst', 2 * GIB, content='backup')
    pve.store_file('nas', 'debian-13-standard_13.1-1_amd64.tar.zst', GIB // 8, content='vztmpl')


def kept(pve):
    """The operations that the fake has code of its own for. It answers all others by their schema alone."""
    own = set()
    for route in pve.runner.app.router.routes():
        path = route.resource.canonical
        if path.startswith('/api2/json/') and '{tail}' not in path:
            own.add(re.sub(r'\\{.+?\\}', '[^/]+', re.escape(route.method + ' ' + path[len('/api2/json'):])))
    known = [method + ' ' + path for path, methods in fakepve.schema.load().paths.items() for method in methods]
    return sorted(name for name in known if any(re.fullmatch(pattern, name) for pattern in own))


async def main(certificate, key):
    secret = str(uuid.uuid4())
    pve = cluster(secret)
    await pve.start(certificate, key)
    await fill(pve, secret, certificate)
    ready = {'url': pve.url, 'token_id': TOKEN_ID, 'token_secret': secret,
             'tasks': [task['upid'] for task in pve.tasklog], 'kept': kept(pve)}
    print(json.dumps(ready), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await pve.stop()


if __name__ == '__main__':
    asyncio.run(main(*sys.argv[1:]))
